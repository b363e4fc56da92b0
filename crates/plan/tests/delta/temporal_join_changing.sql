SELECT b.a, o.amount FROM bag b LEFT JOIN orders FOR SYSTEM_TIME AS OF PROCTIME() AS o ON o.customer = b.a
----
Materialize (a integer, amount numeric(12,2)) no key; state: the rows
  Project a, amount
    Temporal join on a = customer; state: both sides, and what the left one was given
      Input bag (a) changelog
      Project customer, amount
        Normalise by (order_id); state: the newest row of each key
          Input orders (order_id, customer, amount) by key
