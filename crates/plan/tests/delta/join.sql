SELECT * FROM orders JOIN bag ON a = customer
----
Materialize (order_id bigint, customer integer, amount numeric(12,2), note text, updated_at timestamptz, a integer, b text) no key; state: the rows
  Inner join on customer = a; state: both sides
    Normalise by (order_id); state: the newest row of each key
      Input orders (order_id, customer, amount, note, updated_at) by key
    Input bag (a, b) changelog
