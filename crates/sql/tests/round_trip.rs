//! The parser's law: what is printed parses to what was printed, and no text makes it panic.

use proptest::{collection::vec, option, prelude::*, sample::select};
use segue_sql::{
    Action, Alter, AlterJob, CancelJob, Column, Columns, ConflictAction, CreateSink, CreateSource,
    CreateTable, CreateView, Describe, Drop, DropBehavior, Emission, Explain, ExplainMode,
    Explained, Foreign, FormatClause, Include, Input, JobAction, Mutability, Name, Nullability,
    ObjectKind, Offset, OnExisting, OnMissing, Parallelism, RateLimit, Read, Rows, Show, Shown,
    SinkTable, Stage, StartAt, Statement, StopAt, Wait, Watermark, WeakHandoff, WithOption, parse,
};
use segue_types::SqlType;
use sqlparser::{ast, dialect::PostgreSqlDialect, parser::Parser};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_printed_statement_parses_to_itself(statement in statement()) {
        let printed = statement.to_string();
        prop_assert_eq!(parse(&printed), Ok(vec![statement]), "{}", printed);
    }

    #[test]
    fn statements_in_one_text_do_not_disturb_each_other(statements in vec(statement(), 0..4)) {
        let text: String = statements.iter().map(|one| format!("/* ; */ {one};; -- '\n")).collect();
        prop_assert_eq!(parse(&text), Ok(statements), "{}", text);
    }

    #[test]
    fn a_heap_of_tokens_is_refused_with_a_place_or_printed_and_parsed(tokens in vec(token(), 0..40)) {
        let text = tokens.join(" ");
        match parse(&text) {
            Ok(statements) => {
                for statement in statements {
                    if !matches!(statement, Statement::Sql(_)) {
                        prop_assert_eq!(parse(&statement.to_string()), Ok(vec![statement]));
                    }
                }
            }
            Err(error) => {
                let offset = segue_types::UserError::from(error).offset.expect("a place");
                prop_assert!((1..=text.chars().count() + 1).contains(&offset));
            }
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        let _ = parse(&text);
    }
}

fn statement() -> BoxedStrategy<Statement> {
    let own = prop_oneof![
        4 => create_source().prop_map(Statement::CreateSource),
        4 => create_table().prop_map(Statement::CreateTable),
        1 => create_view().prop_map(|view| {
            // Only a materialized view can wait.
            Statement::CreateView(CreateView { emission: Emission::OnChange, ..view })
        }),
        1 => create_view().prop_map(Statement::CreateMaterializedView),
        1 => create_sink().prop_map(Statement::CreateSink),
        1 => drop_objects(),
        1 => (kind(), name(), action())
            .prop_map(|(kind, name, action)| Statement::Alter(Alter { kind, name, action })),
        1 => (vec(any::<u64>(), 1..3), select(vec![JobAction::Pause, JobAction::Resume]))
            .prop_map(|(jobs, action)| Statement::AlterJob(AlterJob { jobs, action })),
        2 => show(),
        1 => (option::of(name()), name()).prop_map(|(schema, name)| {
            Statement::Describe(Describe { schema, name, offset: Offset(1) })
        }),
        1 => Just(Statement::Flush),
        1 => Just(Statement::Wait(Wait::All)),
        1 => (kind(), name()).prop_map(|(kind, name)| Statement::Wait(Wait::For(kind, name))),
        1 => vec(any::<u64>(), 1..3).prop_map(|jobs| Statement::CancelJob(CancelJob { jobs })),
    ];
    let subject = prop_oneof![
        create_source()
            .prop_map(|create| Explained::Create(Box::new(Statement::CreateSource(create)))),
        name().prop_map(|name| Explained::Object(ObjectKind::MaterializedView, name)),
    ];
    let explained = (subject, select(vec![ExplainMode::Plan, ExplainMode::Analyze]))
        .prop_map(|(subject, mode)| Explain { mode, subject })
        .prop_map(Statement::Explain);
    prop_oneof![9 => own, 1 => explained].boxed()
}

fn create_source() -> impl Strategy<Value = CreateSource> {
    (name(), on_existing(false), columns(), vec(include(), 0..3), input()).prop_map(
        |(name, on_existing, columns, includes, input)| CreateSource {
            name,
            on_existing,
            columns,
            includes,
            input,
            offset: Offset(1),
        },
    )
}

fn create_table() -> impl Strategy<Value = CreateTable> {
    let conflict = vec![
        ConflictAction::DoNothing,
        ConflictAction::Overwrite,
        ConflictAction::DoUpdateIfNotNull,
    ];
    let mutability = vec![Mutability::Mutable, Mutability::AppendOnly];
    let conflict = (option::of(select(conflict)), vec(name(), 0..3));
    let tail = (conflict, vec(include(), 0..3), option::of(input()));
    (name(), on_existing(false), columns(), select(mutability), tail)
        .prop_filter("OR REPLACE of a table is not ours", |(_, existing, ..)| {
            *existing != OnExisting::Replace
        })
        .prop_map(|(name, on_existing, columns, mutability, (conflict, includes, input))| {
            let (on_conflict, versions) = conflict;
            CreateTable {
                name,
                on_existing,
                columns,
                mutability,
                on_conflict,
                versions,
                includes,
                input,
                offset: Offset(1),
            }
        })
}

fn create_view() -> impl Strategy<Value = CreateView> {
    let emission = select(vec![Emission::OnChange, Emission::OnWindowClose]);
    (name(), on_existing(true), vec(name(), 0..3), query(), emission).prop_map(
        |(name, on_existing, columns, query, emission)| CreateView {
            name,
            on_existing,
            columns,
            query,
            emission,
            offset: Offset(1),
        },
    )
}

fn create_sink() -> impl Strategy<Value = CreateSink> {
    let emission = select(vec![Emission::OnChange, Emission::OnWindowClose]);
    let table = (name(), vec(name(), 0..3));
    let table = table.prop_map(|(name, columns)| SinkTable { name, columns, offset: Offset(1) });
    let options = option::of((options(1), option::of(format())));
    (name(), on_existing(false), option::of(table), query(), emission, options).prop_map(
        |(name, on_existing, into, query, emission, options)| {
            let (options, format) = options.unwrap_or_default();
            let offset = Offset(1);
            CreateSink { name, on_existing, into, query, emission, options, format, offset }
        },
    )
}

fn on_existing(replaceable: bool) -> impl Strategy<Value = OnExisting> {
    let mut all = vec![OnExisting::Refuse, OnExisting::Skip];
    if replaceable {
        all.push(OnExisting::Replace);
    }
    select(all)
}

fn drop_objects() -> impl Strategy<Value = Statement> {
    let missing = select(vec![OnMissing::Refuse, OnMissing::Skip]);
    let behavior = select(vec![DropBehavior::Restrict, DropBehavior::Cascade]);
    (kind(), missing, vec(name(), 1..3), behavior).prop_map(
        |(kind, on_missing, names, behavior)| {
            Statement::Drop(Drop { kind, on_missing, names, behavior })
        },
    )
}

fn action() -> impl Strategy<Value = Action> {
    let limit =
        || prop_oneof![Just(RateLimit::Unlimited), any::<u64>().prop_map(RateLimit::RowsPerSecond)];
    prop_oneof![
        select(vec![Action::Pause, Action::Resume, Action::Refresh]),
        limit().prop_map(Action::SetSourceRateLimit),
        limit().prop_map(Action::SetBackfillRateLimit),
        Just(Action::SetParallelism(Parallelism::Adaptive)),
        any::<std::num::NonZeroU32>()
            .prop_map(|readers| Action::SetParallelism(Parallelism::Fixed(readers))),
    ]
}

fn show() -> impl Strategy<Value = Statement> {
    let lists = vec![
        Shown::Sources,
        Shown::Stages,
        Shown::Tables,
        Shown::Views,
        Shown::MaterializedViews,
        Shown::Sinks,
        Shown::Jobs,
    ];
    let list = (select(lists), option::of(name()), option::of(text()))
        .prop_map(|(what, from, like)| Show { what, from, like });
    let create = (kind(), name()).prop_map(|(kind, name)| Show {
        what: Shown::Create(kind, name),
        from: None,
        like: None,
    });
    prop_oneof![list, create].prop_map(Statement::Show)
}

fn kind() -> impl Strategy<Value = ObjectKind> {
    select(vec![
        ObjectKind::Source,
        ObjectKind::Table,
        ObjectKind::View,
        ObjectKind::MaterializedView,
        ObjectKind::Sink,
    ])
}

fn columns() -> impl Strategy<Value = Columns> {
    (vec(column(), 1..4), vec(name(), 0..3), option::of(watermark())).prop_map(
        |(columns, key, watermark)| Columns { columns, key, key_offset: Offset(1), watermark },
    )
}

fn column() -> impl Strategy<Value = Column> {
    let nullability = select(vec![Nullability::Nullable, Nullability::NotNull]);
    let given = (option::of(expression()), option::of(expression()));
    (name(), sql_type(), nullability, given).prop_map(
        |(name, ty, nullability, (default, generated))| Column {
            name,
            ty,
            nullability,
            default,
            generated,
            offset: Offset(1),
        },
    )
}

fn watermark() -> impl Strategy<Value = Watermark> {
    (name(), expression(), options(0)).prop_map(|(column, expression, options)| Watermark {
        column,
        expression,
        options,
        offset: Offset(1),
    })
}

fn sql_type() -> impl Strategy<Value = SqlType> {
    let scalar = prop_oneof![
        Just(SqlType::Boolean),
        Just(SqlType::SmallInt),
        Just(SqlType::Integer),
        Just(SqlType::BigInt),
        Just(SqlType::Real),
        Just(SqlType::Double),
        (1..=38u8, 0..=38i8).prop_map(|(precision, scale)| SqlType::Numeric {
            precision,
            scale: scale.min(precision.cast_signed()),
        }),
        Just(SqlType::Text),
        Just(SqlType::Bytea),
        Just(SqlType::Date),
        Just(SqlType::Time),
        Just(SqlType::Timestamp),
        Just(SqlType::Timestamptz),
        Just(SqlType::Interval),
        Just(SqlType::Uuid),
        Just(SqlType::Jsonb),
    ];
    scalar.prop_recursive(4, 12, 3, |inner| {
        let members = proptest::collection::btree_map(name(), inner.clone(), 1..3)
            .prop_map(|members| members.into_iter().map(|(name, ty)| (name.into(), ty)).collect());
        prop_oneof![
            inner.prop_map(|element| SqlType::Array(Box::new(element))),
            members.prop_map(SqlType::Struct),
        ]
    })
}

fn include() -> impl Strategy<Value = Include> {
    let kind =
        select(vec!["key", "partition", "offset", "timestamp", "header", "payload", "stage"]);
    (kind, option::of(text()), option::of(name())).prop_map(|(kind, inner, column)| Include {
        kind: kind.to_owned(),
        inner,
        column,
        offset: Offset(1),
    })
}

fn input() -> impl Strategy<Value = Input> {
    let stage = (name(), read()).prop_map(|(name, read)| Stage { name, read, offset: Offset(1) });
    prop_oneof![read().prop_map(Input::Read), vec(stage, 1..4).prop_map(Input::Stages)]
}

fn read() -> impl Strategy<Value = Read> {
    let allow = select(vec![WeakHandoff::Gap, WeakHandoff::Overlap]);
    let rows = select(vec![Rows::AsDeclared, Rows::AsEvents]);
    (
        options(1),
        option::of(format()),
        option::of(start()),
        option::of(stop()),
        option::of(allow),
        rows,
    )
        .prop_map(|(options, format, start, stop, allow, rows)| Read {
            options,
            format,
            start,
            stop,
            allow,
            rows,
            offset: Offset(1),
            start_offset: Offset(1),
            stop_offset: Offset(1),
        })
}

fn options(at_least: usize) -> impl Strategy<Value = Vec<WithOption>> {
    let plain =
        select(vec!["connector", "topic", "properties.bootstrap.server", "scan.startup.mode"])
            .prop_map(str::to_owned);
    let odd = "[a-zA-Z0-9. \"'é]{1,8}";
    proptest::collection::btree_map(prop_oneof![3 => plain, 1 => odd], text(), at_least..4)
        .prop_map(|options| {
            let option = |(name, value)| WithOption { name, value, offset: Offset(1) };
            options.into_iter().map(option).collect()
        })
}

fn format() -> impl Strategy<Value = FormatClause> {
    let (formats, encodes) = (vec!["plain", "upsert"], vec!["json", "csv", "parquet", "native"]);
    (select(formats), select(encodes), options(0)).prop_map(|(format, encode, options)| {
        FormatClause {
            format: format.to_owned(),
            encode: encode.to_owned(),
            options,
            offset: Offset(1),
        }
    })
}

fn start() -> impl Strategy<Value = StartAt> {
    prop_oneof![
        Just(StartAt::Handoff),
        Just(StartAt::Earliest),
        Just(StartAt::Latest),
        text().prop_map(StartAt::Timestamp),
        text().prop_map(StartAt::Offsets),
        text().prop_map(StartAt::Query),
        (name(), name()).prop_map(|(split, position)| StartAt::Columns { split, position }),
    ]
}

fn stop() -> impl Strategy<Value = StopAt> {
    prop_oneof![
        Just(StopAt::Latest),
        text().prop_map(StopAt::Timestamp),
        text().prop_map(StopAt::Offsets),
    ]
}

/// Plain, folded, reserved, wide, and full of quotes.
fn name() -> impl Strategy<Value = Name> {
    let words = vec![
        "orders",
        "order",
        "Order",
        "with",
        "primary",
        "watermark",
        "stages",
        "start",
        "format",
    ];
    prop_oneof![select(words).prop_map(str::to_owned), "[a-zA-Z_é\"'. -][a-z0-9\"$;]{0,5}"]
        .prop_map(Name::new)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9:/@.']{0,10}",
        Just("it's; -- \"not\" /* over */ \\ $$ é\n".to_owned()),
        any::<String>(),
    ]
}

fn query() -> impl Strategy<Value = Foreign<ast::Query>> {
    select(vec![
        "SELECT 1",
        "SELECT a, count(*) AS n FROM t -- why\n WHERE a > 1 GROUP BY a",
        "WITH x AS (SELECT 1) SELECT * FROM x JOIN y USING (id)",
        "(VALUES (1, 'a;b'), (2, E'c\\n'))",
    ])
    .prop_map(|text| Foreign {
        tree: read_with(text, |parser| *parser.parse_query().expect("a query")),
        text: text.to_owned(),
    })
}

fn expression() -> impl Strategy<Value = Foreign<ast::Expr>> {
    select(vec![
        "NULL",
        "a - INTERVAL '5' SECOND",
        "1 + 2",
        "'x' || (lower(b))",
        "b::text",
        "now()",
    ])
    .prop_map(|text| Foreign {
        tree: read_with(text, |parser| parser.parse_expr().expect("an expression")),
        text: text.to_owned(),
    })
}

fn read_with<T>(text: &str, read: impl FnOnce(&mut Parser<'_>) -> T) -> Box<T> {
    let dialect = PostgreSqlDialect {};
    Box::new(read(&mut Parser::new(&dialect).try_with_sql(text).expect("tokens")))
}

/// Words of the grammar, so that a heap of them gets deep into it.
fn token() -> impl Strategy<Value = String> {
    let words = vec![
        "CREATE",
        "SOURCE",
        "TABLE",
        "VIEW",
        "MATERIALIZED",
        "IF",
        "NOT",
        "EXISTS",
        "s",
        "\"S\"",
        "(",
        ")",
        ",",
        "a",
        "int",
        "STRUCT",
        "<",
        ">",
        ">>",
        "[",
        "]",
        "PRIMARY",
        "KEY",
        "WITH",
        "STAGES",
        "=",
        "'x'",
        "FORMAT",
        "ENCODE",
        "PLAIN",
        "JSON",
        "START",
        "STOP",
        "AT",
        "LATEST",
        "HANDOFF",
        "AS",
        "SELECT",
        "1",
        ".",
        ";",
        "DROP",
        "ALTER",
        "PAUSE",
        "RESUME JOB 1",
        "SET SOURCE_RATE_LIMIT =",
        "SET PARALLELISM TO",
        "SHOW",
        "CREATE SOURCE s (a int) WITH (",
        "connector = 'x'",
        "WAIT",
        "CANCEL",
        "JOB",
        "EXPLAIN",
        "FLUSH",
        "INCLUDE",
        "WATERMARK FOR",
        "é",
        "-",
        "$1",
        "DEFAULT",
        "NULL",
        "COPY",
        "STDIN",
    ];
    prop_oneof![9 => select(words).prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)]
}
