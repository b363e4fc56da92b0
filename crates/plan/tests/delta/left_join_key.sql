SELECT o.order_id, t.n FROM orders o LEFT JOIN totals t ON o.customer = t.customer
----
Materialize (order_id bigint, n bigint) key (order_id); state: the rows
  Project order_id, n
    Left join on customer = customer; state: both sides
      Normalise by (order_id); state: the newest row of each key
        Input orders (order_id, customer) by key
      Input totals (customer, n) changelog
