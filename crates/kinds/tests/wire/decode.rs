//! Bodies that the real server takes or refuses, and what it says. Each expectation was read off its Go code.

use kinds::types;
use schema::decode::{DecodeError, FieldValidation, decode, decode_any};
use schema::encode::{encode, encode_any};
use schema::types::TypeId;

pub(crate) fn of(kind: &str) -> TypeId {
    let groups = ["", "apps", "coordination.k8s.io", "apiextensions.k8s.io"];
    groups.iter().find_map(|group| types().kind(group, "v1", kind)).unwrap().0
}

/// A kind, a body of it and what Go says to that.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "Deployment",
        r#"{"spec": {"replicas": "3"}}"#,
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    (
        "Deployment",
        r#"{"spec": {"replicas": 1.5}}"#,
        "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    (
        "Deployment",
        r#"{"spec": {"replicas": 1e3}}"#,
        "json: cannot unmarshal number 1e3 into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    (
        "Deployment",
        r#"{"spec": {"replicas": 2147483648}}"#,
        "json: cannot unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    (
        "Deployment",
        r#"{"spec": "x"}"#,
        "json: cannot unmarshal string into Go struct field Deployment.spec of type v1.DeploymentSpec",
    ),
    (
        "Deployment",
        r#"{"metadata": {"labels": ["a"]}}"#,
        "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
    ),
    (
        "Deployment",
        r#"{"metadata": {"labels": {"a": 1}}}"#,
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
    ),
    (
        "ConfigMap",
        r#"{"data": {"a": 5}}"#,
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
    ),
    (
        "ConfigMap",
        r#"{"binaryData": {"a": 5}}"#,
        "json: cannot unmarshal number into Go struct field ConfigMap.binaryData of type []uint8",
    ),
    ("ConfigMap", r#"{"binaryData": {"a": "!"}}"#, "illegal base64 data at input byte 0"),
    (
        "ConfigMap",
        r#"{"binaryData": {"a": [1, 256]}}"#,
        "json: cannot unmarshal number 256 into Go struct field ConfigMap.binaryData of type uint8",
    ),
    (
        "ConfigMap",
        r#"{"immutable": "yes"}"#,
        "json: cannot unmarshal string into Go struct field ConfigMap.immutable of type bool",
    ),
    (
        "Pod",
        r#"{"spec": {"containers": {}}}"#,
        "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
    ),
    (
        "Pod",
        r#"{"spec": {"containers": ["a"]}}"#,
        "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type v1.Container",
    ),
    (
        "Pod",
        r#"{"spec": {"containers": [{"imagePullPolicy": 5}]}}"#,
        "json: cannot unmarshal number into Go struct field Container.spec.containers.imagePullPolicy of type v1.PullPolicy",
    ),
    (
        "Pod",
        r#"{"spec": {"containers": [{"ports": [{"containerPort": "80"}]}]}}"#,
        "json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
    ),
    (
        "Pod",
        r#"{"spec": {"containers": [{"env": [{"valueFrom": {"configMapKeyRef": {"name": 5}}}]}]}}"#,
        "json: cannot unmarshal number into Go struct field ConfigMapKeySelector.spec.containers.env.valueFrom.configMapKeyRef.LocalObjectReference.name of type string",
    ),
    (
        "Pod",
        r#"{"spec": {"containers": [{"resources": {"limits": 5}}]}}"#,
        "json: cannot unmarshal number into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
    ),
    (
        "Pod",
        r#"{"spec": {"containers": [{"resources": {"limits": {"cpu": "x"}}}]}}"#,
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
    (
        "Pod",
        r#"{"spec": {"containers": [{"resources": {"limits": {"cpu": {}}}}]}}"#,
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
    (
        "Pod",
        r#"{"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": true}}}]}}"#,
        "json: cannot unmarshal bool into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
    ),
    (
        "Pod",
        r#"{"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": 99999999999}}}]}}"#,
        "json: cannot unmarshal number 99999999999 into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
    ),
    (
        "Pod",
        r#"{"metadata": {"creationTimestamp": 5}}"#,
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
    ),
    (
        "Pod",
        r#"{"metadata": {"creationTimestamp": "yesterday"}}"#,
        r#"parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006""#,
    ),
    (
        "Pod",
        r#"{"metadata": {"ownerReferences": [{"uid": 5}]}}"#,
        "json: cannot unmarshal number into Go struct field OwnerReference.metadata.ownerReferences.uid of type types.UID",
    ),
    (
        "Pod",
        r#"{"spec": {"priority": "a"}, "metadata": {"creationTimestamp": ""}}"#,
        r#"parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006""#,
    ),
    (
        "Pod",
        r#"{"spec": {"priority": "a", "hostNetwork": "b"}, "unknown": 1}"#,
        "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32",
    ),
    (
        "Lease",
        r#"{"spec": {"renewTime": "2024-01-01T00:00:00Z"}}"#,
        r#"parsing time "2024-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#,
    ),
    (
        "StatefulSet",
        r#"{"spec": {"volumeClaimTemplates": [{"kind": 5}]}}"#,
        "json: cannot unmarshal number into Go struct field PersistentVolumeClaim.spec.volumeClaimTemplates.TypeMeta.kind of type string",
    ),
    (
        "CustomResourceDefinition",
        r#"{"spec": {"versions": [{"schema": {"openAPIV3Schema": {"items": {"minLength": "x"}}}}]}}"#,
        "json: cannot unmarshal string into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.minLength of type int64",
    ),
    (
        "CustomResourceDefinition",
        r#"{"spec": {"versions": [{"schema": {"openAPIV3Schema": {"items": [1]}}}]}}"#,
        "json: cannot unmarshal number into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items of type v1.JSONSchemaProps",
    ),
    (
        "CustomResourceDefinition",
        r#"{"spec": {"versions": [{"schema": {"openAPIV3Schema": {"additionalProperties": 5, "type": 5}}}]}}"#,
        "boolean or JSON schema expected",
    ),
];

#[test]
fn values_of_the_wrong_type_are_refused_in_the_words_of_go() {
    for &(kind, body, expected) in WRONG {
        for validation in [FieldValidation::Ignore, FieldValidation::Warn, FieldValidation::Strict] {
            let refused = decode(types(), of(kind), body.as_bytes(), validation).unwrap_err();
            assert_eq!(refused, DecodeError::Malformed(expected.to_owned()), "{kind} {body}");
        }
    }
}

/// A kind, a body of it and what Go makes of that.
const TAKEN: &[(&str, &str, &str)] = &[
    (
        "Pod",
        r#"{"metadata": null, "spec": {"containers": [null, {}], "tolerations": null, "hostNetwork": false, "priority": 0, "terminationGracePeriodSeconds": null}}"#,
        r#"{"metadata":{},"spec":{"containers":[{"name":"","resources":{}},{"name":"","resources":{}}],"priority":0},"status":{}}"#,
    ),
    (
        "ConfigMap",
        r#"{"data": {"a": null}, "binaryData": {"a": null, "b": "", "c": [1, 2], "d": "YR==", "e": "YW\nJj"}}"#,
        r#"{"metadata":{},"data":{"a":""},"binaryData":{"a":null,"b":"","c":"AQI=","d":"YQ==","e":"YWJj"}}"#,
    ),
    (
        "Pod",
        r#"{"spec": {"containers": [{"resources": {"limits": {"cpu": "0.5", "memory": "1024Mi", "a": 2, "b": null, "c": "1e3"}}}]}}"#,
        r#"{"metadata":{},"spec":{"containers":[{"name":"","resources":{"limits":{"a":"2","b":"0","c":"1e3","cpu":"500m","memory":"1Gi"}}}]},"status":{}}"#,
    ),
    (
        "Pod",
        r#"{"metadata": {"creationTimestamp": "2024-05-06T07:08:09.5+02:00", "deletionTimestamp": null}}"#,
        r#"{"metadata":{"creationTimestamp":"2024-05-06T05:08:09Z"},"spec":{"containers":null},"status":{}}"#,
    ),
    (
        "Service",
        r#"{"spec": {"ports": [{"port": 80}, {"targetPort": "http"}, {"targetPort": null}]}}"#,
        r#"{"metadata":{},"spec":{"ports":[{"port":80,"targetPort":0},{"port":0,"targetPort":"http"},{"port":0,"targetPort":0}]},"status":{"loadBalancer":{}}}"#,
    ),
    (
        "Pod",
        r#"{"spec": {"nodeName": "a", "priority": 1, "containers": [{"name": "a", "image": "b"}]}, "spec": {"nodeName": null, "priority": null, "containers": [{"name": "c"}]}}"#,
        r#"{"metadata":{},"spec":{"containers":[{"name":"c","image":"b","resources":{}}],"nodeName":"a"},"status":{}}"#,
    ),
    (
        "Pod",
        r#"{"metadata": {"labels": {"a": "1"}, "labels": {"b": "2"}, "annotations": {"a": "1"}, "annotations": null}}"#,
        r#"{"metadata":{"labels":{"a":"1","b":"2"}},"spec":{"containers":null},"status":{}}"#,
    ),
    (
        "Pod",
        r#"{"metadata": {"name": "\ud800\ud83d\ude00\u00e9<>&\u2028"}}"#,
        r#"{"metadata":{"name":"�😀é\u003c\u003e\u0026\u2028"},"spec":{"containers":null},"status":{}}"#,
    ),
    (
        "CustomResourceDefinition",
        r#"{"spec": {"versions": [{"schema": {"openAPIV3Schema": {"items": [{"type": "a"}], "additionalItems": false, "dependencies": {"a": ["x"], "b": {"type": "y"}}, "default": {"a": [null, 1.5], "b": 1}, "maximum": 5, "minimum": 1.50, "enum": [null, 1]}}}]}}"#,
        r#"{"metadata":{},"spec":{"group":"","names":{"plural":"","kind":""},"scope":"","versions":[{"name":"","served":false,"storage":false,"schema":{"openAPIV3Schema":{"default":{"a":[null,1.5],"b":1},"maximum":5,"minimum":1.5,"enum":[null,1],"items":[{"type":"a"}],"dependencies":{"a":["x"],"b":{"type":"y"}},"additionalItems":false}}}]},"status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":null}}"#,
    ),
    (
        "Lease",
        r#"{"spec": {"renewTime": "2024-01-01T00:00:00.123456+01:00"}}"#,
        r#"{"metadata":{},"spec":{"renewTime":"2023-12-31T23:00:00.123456Z"}}"#,
    ),
];

#[test]
fn what_is_read_is_written_as_go_writes_it() {
    for &(kind, body, expected) in TAKEN {
        let read = decode(types(), of(kind), body.as_bytes(), FieldValidation::Ignore).unwrap();
        let written = encode(types(), of(kind), &read.value);
        assert_eq!(String::from_utf8(written).unwrap(), expected, "{kind} {body}");
    }
}

/// A kind, a body of it and what Go finds in it that no type knows, or twice.
const STRICT: &[(&str, &str, &[&str])] = &[
    (
        "Deployment",
        r#"{"spec": {"replcas": 1, "template": {"spec": {"containers": [{"imge": "a"}]}}}}"#,
        &[r#"unknown field "spec.replcas""#, r#"unknown field "spec.template.spec.containers[0].imge""#],
    ),
    (
        "Pod",
        r#"{"metadata": {"labels": {"a": "1", "a": "2"}, "name": "x", "name": "y"}}"#,
        &[r#"duplicate field "metadata.labels.a""#, r#"duplicate field "metadata.name""#],
    ),
    (
        "Pod",
        r#"{"foo": {"a": 1, "a": 2}, "foo": 1, "Kind": "x", "Metadata": {}}"#,
        &[r#"unknown field "foo""#, r#"unknown field "Kind""#, r#"unknown field "Metadata""#],
    ),
    (
        "Pod",
        r#"{"spec": {"containers": [{"a": 1}, {"a": 1, "a": 2}]}}"#,
        &[r#"unknown field "spec.containers[0].a""#, r#"unknown field "spec.containers[1].a""#],
    ),
    (
        "CustomResourceDefinition",
        r#"{"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": {"a": {}, "a": {"foo": 1}}, "items": {"foo": 1}}}}]}}"#,
        &[
            r#"duplicate field "spec.versions[0].schema.openAPIV3Schema.properties.a""#,
            r#"unknown field "spec.versions[0].schema.openAPIV3Schema.properties.a.foo""#,
        ],
    ),
];

#[test]
fn unknown_and_repeated_fields_are_told_as_asked() {
    for &(kind, body, expected) in STRICT {
        let read = |validation| decode(types(), of(kind), body.as_bytes(), validation);
        assert_eq!(read(FieldValidation::Warn).unwrap().warnings, expected, "{body}");
        let refused = read(FieldValidation::Strict).unwrap_err().to_string();
        assert_eq!(refused, format!("strict decoding error: {}", expected.join(", ")), "{body}");
        let ignored = read(FieldValidation::Ignore).unwrap();
        assert!(ignored.warnings.is_empty(), "{body}");
        assert_eq!(ignored.value, read(FieldValidation::Warn).unwrap().value, "{body}");
    }
}

#[test]
fn a_custom_resource_keeps_what_it_holds() {
    let body =
        br#"{"kind": "Widget", "spec": {"size": 1, "size": 2.50, "big": 9223372036854775808, "n": null}}"#;
    let read = decode_any(body, FieldValidation::Warn).unwrap();
    assert_eq!(read.warnings, [r#"duplicate field "spec.size""#]);
    let expected = r#"{"kind":"Widget","spec":{"big":9223372036854776000,"n":null,"size":2.5}}"#;
    assert_eq!(String::from_utf8(encode_any(&read.value)).unwrap(), expected);
    let refused = decode_any(b"[]", FieldValidation::Warn).unwrap_err().to_string();
    assert_eq!(refused, "json: cannot unmarshal array into Go value of type map[string]interface {}");
}

#[test]
fn refusals_say_what_was_given_and_what_was_wanted() {
    let error = DecodeError::Strict(vec![r#"unknown field "spec.a""#.to_owned()]);
    assert_eq!(
        error.refusal(Some(("Deployment", "v1")), "Deployment", b"{}"),
        r#"Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.a""#
    );
    let body = br#"{"spec": {"a": "somewhat longer"}}"#;
    assert_eq!(
        error.refusal(None, "Deployment", body),
        "the object provided is unrecognized (must be of type Deployment): strict decoding error: \
         unknown field \"spec.a\" ({\"spec\": {\"a\": \"somewhat longe ...)"
    );
}

#[test]
fn floats_are_read_to_the_last_bit() {
    for (text, written) in
        [("92232233720654775807", "92232233720654770000"), ("0.1000000000000000055", "0.1")]
    {
        let body = format!(r#"{{"a":{text}}}"#);
        let read = decode_any(body.as_bytes(), FieldValidation::Strict).unwrap().value;
        assert_eq!(String::from_utf8(encode_any(&read)).unwrap(), format!(r#"{{"a":{written}}}"#));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&body).unwrap(), read, "{text}");
    }
}

#[test]
fn an_entry_without_a_value_in_a_map_of_lists_is_an_empty_list() {
    let (of, _) = types().kind("authorization.k8s.io", "v1", "SubjectAccessReview").unwrap();
    // spec (2) holds extra (5), whose entry has a key (1) and no value (2).
    let message = [0x12, 5, 0x2a, 3, 0x0a, 1, b'a'];
    let read = schema::proto::decode(types(), of, &message).unwrap();
    assert_eq!(read["spec"]["extra"], serde_json::json!({"a": []}));
    let again = schema::proto::decode(types(), of, &schema::proto::encode(types(), of, &read)).unwrap();
    assert_eq!(again, read);
}
