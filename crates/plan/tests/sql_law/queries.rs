//! The queries of the law. Their aggregates have the same types in both engines, they cast no fractions to whole numbers
//! (which PostgreSQL and so Segue round, and DataFusion cuts; pinned in `slt/types`), and what they order is ordered by
//! all that tells rows apart.

/// Over `t` and `u`, each with columns a, b, c, d, at; `k` has a key, `id`, and columns a, b.
pub const QUERIES: &[&str] = &[
    // Row by row.
    "SELECT a, upper(b), d + 1 FROM t WHERE a > 0 AND b IS NOT NULL",
    "SELECT a FROM t UNION ALL SELECT a * 2 FROM t WHERE b = 'x'",
    "SELECT a, a AS again, b FROM t WHERE b LIKE 'x%' ORDER BY a",
    "SELECT a IN (1, 2) AS few, b || '!' AS loud, a::bigint FROM t",
    "SELECT a FROM t WHERE 1 = 2",
    "SELECT a, unnest(make_array(a, a + 1, NULL)) AS item FROM t",
    "SELECT a, unnest(string_to_array(b, 'y')) AS part, unnest(make_array(1, 2)) AS n FROM t",
    "SELECT v.x, t.a FROM t JOIN (VALUES (1, 'one'), (2, 'two')) AS v(n, x) ON t.a = v.n",
    // Groups.
    "SELECT a + 1 AS x, count(*), min(b), max(at), sum(c) FROM t GROUP BY a + 1",
    "SELECT b, count(a), sum(a) FROM t WHERE d > 0 GROUP BY b HAVING count(*) > 1",
    "SELECT count(*), count(b) FILTER (WHERE a > 1), max(d) FROM t",
    "SELECT DISTINCT a % 2, b FROM t",
    "SELECT a, b FROM t WHERE a > 1 UNION SELECT a, b FROM t WHERE c < 1",
    "SELECT n, count(*) FROM (SELECT b, count(*) AS n FROM t GROUP BY b) AS per_b GROUP BY n",
    "WITH big AS (SELECT a, d FROM t WHERE d > 1) SELECT a, max(d), min(d) FROM big GROUP BY a",
    "SELECT CASE WHEN a > 1 THEN 'big' ELSE 'small' END AS size, count(*) FROM t GROUP BY 1",
    "SELECT date_trunc('minute', at) AS minute, count(*), avg(c) FROM t GROUP BY date_trunc('minute', at)",
    "SELECT coalesce(b, 'none') AS name, sum(c) * 2 FROM t GROUP BY coalesce(b, 'none')",
    "SELECT x, count(*) FROM (SELECT DISTINCT a AS x, b FROM t) AS d GROUP BY x",
    "SELECT b, count(DISTINCT a), count(*), sum(DISTINCT c) FILTER (WHERE a > 0) FROM t GROUP BY b",
    "SELECT count(DISTINCT a), count(DISTINCT b), max(a) FROM t",
    "SELECT u.b, count(*), sum(t.a), count(DISTINCT t.c), min(t.a) FROM t JOIN u ON t.a = u.a GROUP BY u.b",
    "SELECT u.b, t.a, sum(t.c) FROM t JOIN u ON t.a = u.a GROUP BY ROLLUP (u.b, t.a)",
    "SELECT count(DISTINCT a + 1) FROM t",
    "SELECT a, b, count(*), grouping(a) FROM t GROUP BY ROLLUP (a, b)",
    "SELECT a, b, count(DISTINCT c) FROM t GROUP BY CUBE (a, b)",
    "SELECT a, b, max(d) FROM t GROUP BY GROUPING SETS ((a), (b), (a, b))",
    // Aggregates without accumulators.
    "SELECT b, array_agg(a ORDER BY a, c, d), bool_and(a > 1), bool_or(a > 1) FROM t GROUP BY b",
    "SELECT string_agg(b, ',' ORDER BY b), count(*) FROM t",
    "SELECT b, bit_and(a), bit_or(a), bit_xor(a) FROM t GROUP BY b",
    "SELECT b, median(c), first_value(a ORDER BY a), last_value(a ORDER BY a) FROM t GROUP BY b",
    "SELECT DISTINCT ON (b) b, a, c FROM t ORDER BY b, a, c, d, at",
    // Joins.
    "SELECT t.a, t.b, u.b, u.d FROM t JOIN u ON t.a = u.a",
    "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a + 1 AND t.c < u.c",
    "SELECT t.a, t.b, u.a, u.b FROM t LEFT JOIN u ON t.a = u.a AND t.b = u.b",
    "SELECT t.a, t.b, u.a, u.d FROM t LEFT JOIN u ON t.a = u.a AND t.d > u.d",
    "SELECT t.a, t.b, u.a, u.d FROM t RIGHT JOIN u ON t.a = u.a AND t.d > u.d",
    "SELECT t.a, t.b, u.a, u.d FROM t FULL JOIN u ON t.a = u.a",
    "SELECT t.a, t.d, u.a, u.d FROM t FULL JOIN u ON t.a = u.a AND t.d > u.d",
    "SELECT x.a, y.b FROM t AS x JOIN t AS y ON x.a = y.a",
    "SELECT x.a, y.a FROM t AS x, t AS y WHERE x.a = y.a + 1 AND x.b = y.b",
    "SELECT x.b, y.b FROM t AS x JOIN u AS y ON x.b IS NOT DISTINCT FROM y.b",
    "SELECT * FROM t JOIN u USING (a, b)",
    "SELECT count(*) FROM t NATURAL JOIN u",
    "SELECT count(*) FROM t CROSS JOIN u",
    "SELECT t.a, u.a FROM t JOIN u ON t.a < u.a",
    "SELECT t.a, u.a FROM t LEFT JOIN u ON t.a < u.a AND u.b = 'x'",
    "SELECT t.a, u.b, v.d FROM t JOIN u ON t.a = u.a JOIN t AS v ON v.b = u.b",
    "SELECT t.b, count(*), max(u.d) FROM t JOIN u ON t.a = u.a GROUP BY t.b",
    "SELECT t.b, count(u.a) FROM t LEFT JOIN u ON t.a = u.a GROUP BY t.b",
    "SELECT k.id, k.b, t.a FROM t JOIN k ON t.a = k.id",
    "SELECT k.id, l.b FROM k LEFT JOIN k AS l ON k.a = l.id",
    // Subqueries.
    "SELECT a, b FROM t WHERE a IN (SELECT a FROM u)",
    "SELECT a, b FROM t WHERE a NOT IN (SELECT a FROM u)",
    "SELECT a, b FROM t WHERE a NOT IN (SELECT a FROM u WHERE a IS NOT NULL)",
    "SELECT a, b FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.c > t.c)",
    "SELECT a, b FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
    "SELECT a, b FROM t WHERE a IN (SELECT a FROM u) OR b = 'x'",
    "SELECT a FROM t WHERE c > (SELECT avg(c) FROM u)",
    "SELECT a, (SELECT max(d) FROM u) AS best FROM t",
    "SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a) AS n FROM t",
    "SELECT a FROM t WHERE d = (SELECT max(d) FROM t AS other WHERE other.b = t.b)",
    "SELECT b, count(*) FROM t GROUP BY b HAVING count(*) >= (SELECT count(*) FROM u)",
    "SELECT a FROM t INTERSECT SELECT a FROM u",
    "SELECT a, b FROM t EXCEPT SELECT a, b FROM u",
    "SELECT a FROM (SELECT a FROM t UNION SELECT a FROM u) AS both WHERE a > 0",
    // Windows and order.
    "SELECT a, b, row_number() OVER (PARTITION BY b ORDER BY a, c, d, at)::bigint AS n FROM t",
    "SELECT a, b, rank() OVER (PARTITION BY b ORDER BY a)::bigint AS r, dense_rank() OVER (PARTITION BY b ORDER BY a)::bigint FROM t",
    "SELECT a, b, sum(c) OVER (PARTITION BY b) AS s, count(*) OVER (PARTITION BY a) AS n FROM t",
    "SELECT a, lag(a) OVER (PARTITION BY b ORDER BY a, c, d, at) AS before, lead(c, 2) OVER (PARTITION BY b ORDER BY a, c, d, at) FROM t",
    "SELECT a, max(d) OVER (PARTITION BY b ORDER BY a RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS m FROM t",
    "SELECT a, first_value(a) OVER (PARTITION BY b ORDER BY a, c, d, at ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t",
    "SELECT a, count(*) OVER (ORDER BY a) AS n FROM t",
    "SELECT a, sum(c) OVER (PARTITION BY a + 1, b) AS s FROM t",
    "SELECT a, b FROM (SELECT a, b, row_number() OVER (PARTITION BY b ORDER BY a, c, d, at) AS n FROM t) AS x WHERE n <= 2",
    "SELECT a, b, c FROM t ORDER BY a DESC NULLS LAST, b, c LIMIT 3",
    "SELECT a, b, c FROM t ORDER BY a, b, c LIMIT 3 OFFSET 2",
    "SELECT a, n FROM (SELECT a, count(*) AS n FROM t GROUP BY a) AS g ORDER BY n DESC, a LIMIT 2",
    "SELECT a, b FROM (SELECT a, b, row_number() OVER (PARTITION BY b ORDER BY a DESC, c, d, at) AS n FROM t) AS x WHERE n = 2",
    "SELECT a, n::bigint FROM (SELECT a, row_number() OVER (ORDER BY a + 1, b, c, d, at) AS n FROM t) AS x WHERE n < 4 AND a > 0",
    "SELECT a + 1 AS x, b FROM t ORDER BY a + 1, b, c, d, at LIMIT 2",
    "SELECT a, b, c, d, at FROM t ORDER BY d DESC NULLS FIRST, a, b, c, at OFFSET 3",
    "SELECT sum(c) FROM (SELECT c FROM t ORDER BY a, b, c, d, at LIMIT 3) AS first",
    "SELECT t.a, f.b FROM t JOIN (SELECT a, b FROM u ORDER BY a, b, c, d, at LIMIT 4) AS f ON t.a = f.a",
    // Constants.
    "SELECT x * 2 FROM generate_series(1, 3) AS s(x)",
    "SELECT 1 AS one, 'x' AS x",
    "SELECT n FROM (VALUES (1), (2)) AS v(n) WHERE n NOT IN (SELECT a FROM t WHERE a IS NOT NULL)",
];

/// Queries in PostgreSQL's words that DataFusion alone does not read, over the same tables. What they answer over rows
/// at rest is pinned in `slt`.
pub const DIALECT: &[&str] = &[
    // Sets.
    "SELECT a, item FROM t, unnest(ARRAY[a, d, NULL]) AS item",
    "SELECT a, part, place FROM t, unnest(string_to_array(b, 'y')) WITH ORDINALITY AS p(part, place)",
    "SELECT a, part FROM t LEFT JOIN unnest(string_to_array(b, 'y')) AS part ON true",
    "SELECT a, n FROM t, generate_series(1, a) AS n WHERE n > 1",
    "SELECT a, n, m FROM t, generate_series(1, a) AS n, LATERAL (SELECT n + a AS m) AS l",
    "SELECT a, n FROM t JOIN generate_series(1, 3) AS n ON n = a",
    "SELECT x, count(*) FROM t, unnest(regexp_matches(b, '[a-z]', 'g')) AS x GROUP BY x",
    "SELECT a, unnest(ARRAY[ARRAY[a, 1], ARRAY[2, d]]) AS item FROM t",
    "SELECT a, n FROM t, LATERAL (SELECT count(*) AS n FROM u WHERE u.a = t.a) AS l",
    // jsonb.
    "SELECT a, jsonb_build_object('a', a, 'b', b) || '{\"z\": 1}' AS j FROM t",
    "SELECT k, v FROM (SELECT jsonb_build_object('a', a, 'b', b) AS j FROM t) AS x, jsonb_each_text(j) AS e(k, v)",
    "SELECT to_jsonb(ARRAY[a, d]) @> '[1]' AS has, to_jsonb(b) ? 'x' AS is FROM t",
    "SELECT b, jsonb_agg(a ORDER BY a DESC, d) AS l, jsonb_object_agg(a, b) FILTER (WHERE a IS NOT NULL) FROM t GROUP BY b",
    "SELECT jsonb_agg(DISTINCT a ORDER BY a) FROM t",
    // Ordered sets.
    "SELECT b, mode() WITHIN GROUP (ORDER BY a) AS m, percentile_disc(0.5) WITHIN GROUP (ORDER BY a DESC) AS d FROM t GROUP BY b",
    "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY a), percentile_cont(ARRAY[0, 1]) WITHIN GROUP (ORDER BY d) FROM t",
    "SELECT b, approx_percentile(0.5, 0.01) WITHIN GROUP (ORDER BY a) AS p FROM t GROUP BY b",
    "SELECT b, array_agg(DISTINCT a), every(a > 1), variance(a) FROM t GROUP BY b",
    // Subqueries and sets of rows.
    "SELECT a, a IN (SELECT a FROM u) AS i, b NOT IN (SELECT b FROM u WHERE u.a = t.a) AS n FROM t",
    "SELECT a, EXISTS (SELECT 1 FROM u WHERE u.a = t.a) AS e, CASE WHEN a IN (SELECT d FROM u) THEN 'in' ELSE 'out' END FROM t",
    "SELECT a, b FROM t WHERE b NOT IN (SELECT b FROM u WHERE u.a = t.a)",
    "SELECT a, b FROM t WHERE b NOT IN (SELECT b FROM u) OR a = 1",
    "SELECT a, b FROM t WHERE (a, b) IN (SELECT a, b FROM u)",
    "SELECT a FROM t WHERE a = ANY (SELECT a FROM u) AND b <> ALL (SELECT b FROM u WHERE b IS NOT NULL)",
    "SELECT a, 1 = ANY(ARRAY[a, d]) AS x, b LIKE ANY(ARRAY['x%', NULL]) AS l, 2 > ALL(ARRAY[a, d]) AS y FROM t",
    "SELECT a, b FROM t INTERSECT ALL SELECT a, b FROM u",
    "SELECT a, b FROM t EXCEPT ALL SELECT a, b FROM u",
    // Numbers. The sum is of eighths: that of other fractions depends on the order in which they are added.
    "SELECT a, c / 3 AS q, sum(c / 8) OVER (PARTITION BY a) AS s FROM t",
    "SELECT a, ARRAY[a] || d AS l, format('%s-%s', a, b) AS f, regexp_split_to_array(b, 'y') AS p FROM t",
    "SELECT b, last_value(a IGNORE NULLS) OVER (PARTITION BY b ORDER BY a, c, d, at) AS l FROM t",
    // Subqueries that DataFusion has no join for.
    "SELECT t.a, l.a, l.b FROM t, LATERAL (SELECT a, b FROM u WHERE u.a = t.a AND u.c > t.c ORDER BY c, d, at, b LIMIT 2) AS l",
    "SELECT t.a, l.c FROM t LEFT JOIN LATERAL (SELECT c FROM u WHERE u.b = t.b ORDER BY c DESC NULLS LAST, a, d, at LIMIT 1 OFFSET 1) AS l ON l.c > t.c",
    "SELECT a, (SELECT count(*) FROM u WHERE u.a < t.a) AS n, (SELECT sum(u.d) + t.a FROM u WHERE u.b = t.b AND u.a >= t.a) AS s FROM t",
    "SELECT a, b FROM t WHERE d > (SELECT avg(d) FROM u WHERE u.a <= t.a) OR EXISTS (SELECT b FROM u WHERE u.a = t.a GROUP BY b HAVING count(*) > t.c)",
    "SELECT a, (SELECT max(x.d) FROM (SELECT d, row_number() OVER (ORDER BY d, a, c, at) AS n FROM u WHERE u.a > t.a) AS x WHERE n < 3) AS m FROM t",
    "SELECT t.a, l.v FROM t, LATERAL (SELECT a AS v FROM u WHERE u.b = t.b UNION ALL SELECT t.a + 1 UNION ALL SELECT id FROM k WHERE k.a > t.a) AS l",
    "SELECT t.a, l.id, l.c FROM t LEFT JOIN LATERAL (SELECT k.id, u.c FROM k LEFT JOIN u ON u.a = t.a AND k.id < u.a WHERE k.a = t.a) AS l ON true",
    "SELECT t.a, l.x FROM t, LATERAL (SELECT DISTINCT u.b || t.b AS x FROM u WHERE u.a IS NOT DISTINCT FROM t.a) AS l",
    "SELECT t.a, t.at, u.at FROM t ASOF JOIN u ON t.a = u.a AND t.at >= u.at",
    "SELECT t.b, u.d FROM t ASOF LEFT JOIN u ON t.b = u.b AND u.d > t.d",
    // Windows of rows that follow each other.
    "SELECT a, count(*) OVER (PARTITION BY b ORDER BY at SESSION WITH GAP INTERVAL '30 seconds') AS n FROM t",
    "SELECT at, max(d) OVER (ORDER BY at SESSION WITH GAP INTERVAL '1' MINUTE) AS m, count(*) OVER (PARTITION BY a) AS n FROM t",
    "SELECT * FROM GAP_FILL((SELECT a, at, max(b) AS b, min(c) AS c FROM t GROUP BY a, at), at, INTERVAL '10 seconds', KEEPNULL(b), INTERPOLATE(c), PARTITION_BY(a)) AS g",
];

/// Queries in PostgreSQL's words beside others that DataFusion answers by itself: they ask for the same.
pub const ALIKE: &[(&str, &str)] = &[
    (
        "SELECT t.a, l.id, l.a AS la FROM t, LATERAL (SELECT id, a FROM k WHERE k.a < t.a ORDER BY id LIMIT 2) AS l",
        "SELECT a, id, la FROM (SELECT t.a, k.id, k.a AS la, row_number() OVER (PARTITION BY t.a, t.copy ORDER BY k.id) AS n \
         FROM (SELECT a, row_number() OVER (ORDER BY a) AS copy FROM t) AS t JOIN k ON k.a < t.a) AS x WHERE n <= 2",
    ),
    (
        "SELECT t.a, l.id FROM t LEFT JOIN LATERAL (SELECT id FROM k WHERE k.a = t.a ORDER BY id DESC LIMIT 1) AS l ON true",
        "SELECT t.a, l.id FROM t LEFT JOIN (SELECT a, max(id) AS id FROM k GROUP BY a) AS l ON l.a = t.a",
    ),
    (
        "SELECT a, (SELECT count(*) FROM k WHERE k.a < t.a) AS n FROM t",
        "SELECT t.a, count(k.id) AS n FROM (SELECT a, row_number() OVER (ORDER BY a) AS copy FROM t) AS t \
         LEFT JOIN k ON k.a < t.a GROUP BY t.a, t.copy",
    ),
    (
        "SELECT t.a, k.id FROM t ASOF LEFT JOIN k ON t.a > k.id",
        "SELECT t.a, max(k.id) AS id FROM (SELECT a, row_number() OVER (ORDER BY a) AS copy FROM t) AS t \
         LEFT JOIN k ON k.id < t.a GROUP BY t.a, t.copy",
    ),
    (
        "SELECT at, count(*) OVER (ORDER BY at SESSION WITH GAP INTERVAL '1 minute') AS n FROM t WHERE at IS NOT NULL",
        "SELECT at, count(*) OVER (PARTITION BY s) AS n FROM (SELECT at, sum(CASE WHEN at < before + INTERVAL '1 minute' \
         THEN 0 ELSE 1 END) OVER (ORDER BY at) AS s FROM (SELECT at, lag(at) OVER (ORDER BY at) AS before FROM t \
         WHERE at IS NOT NULL) AS x) AS y",
    ),
];
