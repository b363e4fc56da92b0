SELECT DISTINCT customer, note FROM orders
----
Materialize (customer integer, note text) key (customer, note); state: the rows
  Distinct (customer, note); state: a count per row
    Project customer, note
      Normalise by (order_id); state: the newest row of each key
        Input orders (order_id, customer, note) by key
