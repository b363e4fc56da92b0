SELECT sum(b) FROM bag
----
ERROR 42883: execution error: Function 'sum' user-defined coercion failed with: Error during planning: function sum(text) does not exist. No function matches the given name and argument types 'sum(Utf8)'. You might need to add explicit type casts.
	Candidate functions:
	sum(UserDefined)
