SELECT a FROM nowhere.bag
----
ERROR 3F000: schema "nowhere" does not exist
HINT: There is one schema for objects, public.
