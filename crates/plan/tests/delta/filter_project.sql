SELECT order_id, amount * 2, upper(note) AS loud FROM orders WHERE amount > 10 AND customer IS NOT NULL
----
Materialize (order_id bigint, ?column? numeric(33,2), loud text) key (order_id); state: the rows
  Project order_id, amount@2 * 2 AS orders.amount * Int64(2), upper(note@3) AS loud
    Filter amount@2 > 10.00 AND customer@1 IS NOT NULL
      Normalise by (order_id); state: the newest row of each key
        Input orders (order_id, customer, amount, note) by key
