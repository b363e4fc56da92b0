//! TLS modes against a server with a certificate of its own.

use arrow::array::AsArray;
use segue_connect::ConnectError;
use segue_testkit::postgres::PostgresServer;
use segue_types::SqlType;

use crate::support::{capture, config, pin, set};

const ENCRYPTED: &str = "SELECT ssl AS encrypted FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

#[tokio::test]
async fn each_mode_means_what_libpq_means() {
    let mut own = PostgresServer::start();
    let mut config = config(ENCRYPTED, &[("encrypted", SqlType::Boolean)]);
    let by_name = own.url().replace("127.0.0.1", "localhost");
    set(&mut config, "url", &by_name);
    set(&mut config, "ssl.mode", "require");
    let error = pin(&config).await.expect_err("the server has no TLS yet");
    assert!(matches!(error, ConnectError::Denied { .. }), "{error:?}");
    own.enable_tls();
    for (mode, expected) in [("disable", false), ("prefer", true), ("require", true)] {
        set(&mut config, "ssl.mode", mode);
        let rows = capture(&config).await.expect(mode);
        assert_eq!(rows.column(0).as_boolean().value(0), expected, "{mode}");
    }
    set(&mut config, "ssl.mode", "verify-full");
    set(&mut config, "ssl.root.cert", &own.certificate().display().to_string());
    let rows = capture(&config).await.expect("the certificate is its own root");
    assert!(rows.column(0).as_boolean().value(0));
    set(&mut config, "url", &own.url());
    let error = pin(&config).await.expect_err("the name is not that of the address");
    assert!(matches!(error, ConnectError::Denied { .. }), "{error:?}");
}
