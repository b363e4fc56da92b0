WITH c AS CHANGELOG FROM orders SELECT order_id, changelog_op FROM c WHERE amount > 1
