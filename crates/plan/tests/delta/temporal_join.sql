SELECT kind, amount FROM events JOIN orders FOR SYSTEM_TIME AS OF PROCTIME() ON note = kind
----
Materialize (kind text, amount numeric(12,2)) append-only; state: the rows
  Project kind, amount
    Temporal join on kind = note; state: the right side
      Input events (kind) append-only
      Project amount, note
        Normalise by (order_id); state: the newest row of each key
          Input orders (order_id, amount, note) by key
