package dev.setpoint.recipe;

import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import java.util.Map;

/** The operator under test: writes a ConfigMap with a text for every Greeting. */
@ControllerConfiguration
public class GreetingReconciler implements Reconciler<Greeting> {
  @Override
  public UpdateControl<Greeting> reconcile(Greeting greeting, Context<Greeting> context) {
    var metadata = greeting.getMetadata();
    var text = "Hello, " + greeting.getSpec().name + "!";
    var map =
        new ConfigMapBuilder()
            .withNewMetadata()
            .withNamespace(metadata.getNamespace())
            .withName(metadata.getName())
            .endMetadata()
            .withData(Map.of("text", text))
            .build();
    map.addOwnerReference(greeting);
    context.getClient().resource(map).serverSideApply();
    return UpdateControl.noUpdate();
  }
}
