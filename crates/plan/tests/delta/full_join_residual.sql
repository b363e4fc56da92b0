SELECT o.order_id, b.a FROM orders o FULL JOIN bag b ON o.customer = b.a + 1 AND o.note < b.b
----
Materialize (order_id bigint, a integer) no key; state: the rows
  Project order_id, a
    Full join on o.customer = b.a + Int64(1) AND note@2 < b@5; state: both sides
      Project order_id, customer, note, CAST(customer@1 AS Int64) AS o.customer
        Normalise by (order_id); state: the newest row of each key
          Input orders (order_id, customer, note) by key
      Project a, b, CAST(a@0 AS Int64) + 1 AS b.a + Int64(1)
        Input bag (a, b) changelog
