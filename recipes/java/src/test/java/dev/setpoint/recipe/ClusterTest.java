package dev.setpoint.recipe;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.javaoperatorsdk.operator.Operator;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ClusterTest {
  private static final int PATIENCE_SECONDS = 30;

  @TempDir Path folder;
  private ControlPlane plane;

  @BeforeEach
  void start() throws Exception {
    plane = ControlPlane.start(folder);
  }

  @AfterEach
  void stop() throws Exception {
    plane.close();
  }

  private static Deployment deployment() {
    var labels = Map.of("app", "web");
    return new DeploymentBuilder()
        .withNewMetadata()
        .withNamespace("default")
        .withName("web")
        .endMetadata()
        .withNewSpec()
        .withReplicas(2)
        .withNewSelector()
        .withMatchLabels(labels)
        .endSelector()
        .withNewTemplate()
        .withNewMetadata()
        .withLabels(labels)
        .endMetadata()
        .withNewSpec()
        .addNewContainer()
        .withName("web")
        .withImage("nginx")
        .endContainer()
        .endSpec()
        .endTemplate()
        .endSpec()
        .build();
  }

  @Test
  void aDeploymentRunsItsPodsAndTheyGoWithIt() {
    var client = plane.client;
    client.resource(deployment()).create();
    var deployments = client.apps().deployments().inNamespace("default");
    deployments
        .withName("web")
        .waitUntilCondition(
            found -> found != null && Objects.equals(found.getStatus().getReadyReplicas(), 2),
            PATIENCE_SECONDS,
            SECONDS);
    var pods = client.pods().inNamespace("default");
    assertEquals(2, pods.list().getItems().size());
    pods.list().getItems().forEach(pod -> assertNotNull(pod.getSpec().getNodeName()));
    deployments.withName("web").delete();
    for (var pod : pods.list().getItems()) {
      pods.withName(pod.getMetadata().getName())
          .waitUntilCondition(Objects::isNull, PATIENCE_SECONDS, SECONDS);
    }
    assertEquals(0, pods.list().getItems().size());
  }

  private static Greeting greeting(String name) {
    var greeting = new Greeting();
    greeting.getMetadata().setNamespace("default");
    greeting.getMetadata().setName("hello");
    greeting.setSpec(new Greeting.Spec());
    greeting.getSpec().name = name;
    return greeting;
  }

  @Test
  void theOperatorGreets() {
    var client = plane.client;
    client.load(getClass().getResourceAsStream("/definition.yaml")).create();
    var operator = new Operator(overrides -> overrides.withKubernetesClient(client).withCloseClientOnStop(false));
    operator.register(new GreetingReconciler());
    operator.start();
    try {
      client.resource(greeting("Ada")).create();
      var map = client.configMaps().inNamespace("default").withName("hello");
      map.waitUntilCondition(
          found -> found != null && "Hello, Ada!".equals(found.getData().get("text")),
          PATIENCE_SECONDS,
          SECONDS);
      client.resource(greeting("Ada")).delete();
      map.waitUntilCondition(Objects::isNull, PATIENCE_SECONDS, SECONDS);
    } finally {
      operator.stop();
    }
  }

  @Test
  void aGreetingWithoutANameIsInvalid() {
    var client = plane.client;
    client.load(getClass().getResourceAsStream("/definition.yaml")).create();
    var refused =
        assertThrows(KubernetesClientException.class, () -> client.resource(greeting(null)).create());
    assertEquals(422, refused.getCode());
  }
}
