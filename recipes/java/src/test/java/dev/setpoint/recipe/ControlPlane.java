package dev.setpoint.recipe;

import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Path;

/** A control plane of its own for each test: control loops, scheduler and one simulated node. */
final class ControlPlane implements AutoCloseable {
  private final Process program;
  final KubernetesClient client;

  private ControlPlane(Process program, KubernetesClient client) {
    this.program = program;
    this.client = client;
  }

  static ControlPlane start(Path folder) throws IOException {
    var setpoint = System.getenv().getOrDefault("SETPOINT", "setpoint");
    var program =
        new ProcessBuilder(
                setpoint, "up", "--ephemeral", "--listen", "127.0.0.1:0", "--data-dir", folder.toString())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    var output = new BufferedReader(new InputStreamReader(program.getInputStream()));
    for (var line = output.readLine(); line != null; line = output.readLine()) {
      if (line.startsWith("ready ")) {
        var kubeconfig = new File(line.split("kubeconfig=")[1]);
        var config = Config.fromKubeconfig(kubeconfig);
        return new ControlPlane(program, new KubernetesClientBuilder().withConfig(config).build());
      }
    }
    throw new IOException("setpoint ended before it was ready");
  }

  @Override
  public void close() throws InterruptedException {
    client.close();
    program.destroy();
    program.waitFor();
  }
}
