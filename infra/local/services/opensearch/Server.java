import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.logging.log4j.core.config.DefaultConfiguration;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.Plugin;

/**
 * One OpenSearch node in this process, its modules from the class path: what is published for Maven has no launcher.
 *
 * <pre>java -cp 'lib/*' Server HOME PORT [PLUGIN_CLASS…]</pre>
 *
 * HTTP listens on 127.0.0.1:PORT, the transport on PORT + 1. HOME/config/opensearch.yml adds settings.
 */
final class Server extends Node {
  private Server(Environment environment, List<Class<? extends Plugin>> plugins) {
    super(environment, plugins, true);
  }

  public static void main(String[] args) throws Exception {
    Path home = Path.of(args[0]).toAbsolutePath();
    int port = Integer.parseInt(args[1]);
    Configurator.initialize(new DefaultConfiguration());
    Configurator.setRootLevel(Level.WARN);

    List<Class<? extends Plugin>> plugins = new ArrayList<>();
    for (String name :
        List.of(
            "org.opensearch.transport.Netty4Plugin",
            "org.opensearch.analysis.common.CommonAnalysisPlugin",
            "org.opensearch.index.reindex.ReindexPlugin")) {
      plugins.add(Class.forName(name).asSubclass(Plugin.class));
    }
    for (int i = 2; i < args.length; i++) {
      plugins.add(Class.forName(args[i]).asSubclass(Plugin.class));
    }
    Settings settings =
        Settings.builder()
            .put("path.home", home)
            .put("path.data", home.resolve("data"))
            .put("path.logs", home.resolve("logs"))
            .put("cluster.name", "mneme-tests")
            .put("node.name", "node-1")
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.port", port)
            .put("transport.port", port + 1)
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .put("action.auto_create_index", false)
            .build();
    Path config = Files.createDirectories(home.resolve("config"));
    Node node = new Server(InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), config, () -> "node-1"), plugins);
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  try {
                    node.close();
                    node.awaitClose(20, TimeUnit.SECONDS);
                  } catch (Exception e) {
                    e.printStackTrace();
                  }
                }));
    node.start();
    Thread.currentThread().join();
  }
}
