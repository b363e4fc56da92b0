import java.nio.charset.StandardCharsets;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksIterator;

/**
 * Removes the bookie's registration from the metadata of a standalone broker that was killed, as the end of a session
 * does in a cluster. Started over it, the bookie may register and unregister itself for ever: it meets its own removal
 * of the stale record as news, and Pulsar 3.0 cannot tell its new record from a foreign one (apache/pulsar#17759).
 */
public class Forget {
    private static final String REGISTERED = "/ledgers/available/";

    public static void main(String[] arguments) throws Exception {
        RocksDB.loadLibrary();
        try (Options options = new Options(); RocksDB db = RocksDB.open(options, arguments[0])) {
            byte[] first = REGISTERED.getBytes(StandardCharsets.UTF_8);
            try (RocksIterator records = db.newIterator()) {
                for (records.seek(first); records.isValid(); records.next()) {
                    String path = new String(records.key(), StandardCharsets.UTF_8);
                    if (!path.startsWith(REGISTERED)) {
                        break;
                    }
                    db.delete(records.key());
                }
            }
        }
    }
}
