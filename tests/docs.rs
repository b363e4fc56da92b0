//! The support matrix in docs/ is what the planner's tables say of the connectors that the server has.
//!
//! `UPDATE_DOCS=1` writes the page anew. The examples of docs/sql.md and docs/operations.md are statements, and run.

use std::sync::Arc;

use segue_connect::{Connector, Registry};
use segue_connector_datagen::DatagenConnector;
use segue_connector_files::FilesConnector;
use segue_connector_kafka::KafkaConnector;
use segue_connector_nats::NatsConnector;
use segue_connector_postgres::PostgresConnector;
use segue_connector_pulsar::PulsarConnector;
use segue_plan::tables::{connector_rows, support_matrix};
use segue_testkit::segue::{Segue, repository};

fn registry() -> Registry {
    let connectors: [Arc<dyn Connector>; 6] = [
        Arc::new(DatagenConnector),
        Arc::new(FilesConnector),
        Arc::new(KafkaConnector),
        Arc::new(NatsConnector),
        Arc::new(PostgresConnector),
        Arc::new(PulsarConnector),
    ];
    Registry::new(connectors)
}

#[test]
fn the_support_matrix_is_printed_from_the_planners_tables() {
    let path = repository().join("docs/support-matrix.md");
    let printed = support_matrix(&registry());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &printed).expect("the checkout can be written");
    }
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let differs = page.lines().zip(printed.lines()).find(|(page, printed)| page != printed);
    assert!(page == printed, "UPDATE_DOCS=1 writes it anew; first difference: {differs:#?}");
}

#[tokio::test]
async fn the_server_has_the_connectors_of_the_page() {
    let segue = Segue::start(env!("CARGO_BIN_EXE_segue"));
    let client = segue.connect().await;
    let sql = "SELECT connector, configuration FROM segue.connectors";
    let rows = client.query(sql, &[]).await.expect("the relation is there");
    let mut served: Vec<(String, String)> =
        rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let mut known: Vec<(String, String)> = connector_rows(&registry())
        .into_iter()
        .map(|row| (row.connector.to_owned(), row.configuration))
        .collect();
    served.sort();
    known.sort();
    assert_eq!(served, known);
}

/// The text of every block of SQL of a page.
fn examples(page: &str) -> Vec<String> {
    let blocks = page.split("```sql\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn the_examples_of_the_sql_reference_run() {
    let pages = ["docs/sql.md", "docs/operations.md"]
        .map(|page| std::fs::read_to_string(repository().join(page)).expect("it is there"));
    let segue = Segue::start(env!("CARGO_BIN_EXE_segue"));
    let client = segue.connect().await;
    let (mut run, mut parsed) = (0, 0);
    for example in pages.iter().flat_map(|page| examples(page)) {
        let statements = segue_sql::parse(&example).expect(&example);
        parsed += statements.len();
        // Those of other servers, and of files that are not here, are only read.
        if ["kafka", "nats", "postgres", "pulsar", "/data/"]
            .iter()
            .any(|word| example.contains(word))
        {
            continue;
        }
        client.batch_execute(&example).await.unwrap_or_else(|error| panic!("{example}\n{error:?}"));
        run += statements.len();
    }
    assert!(run >= 15 && parsed > run, "{run} of {parsed}: the examples have gone");
}
