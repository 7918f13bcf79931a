//! The sources of volumes, of which a volume has exactly one: those of pods and those of persistent volumes.

mod iscsi;

use api::field::{Error, ErrorList};
use api::name::{self, Format};

use super::at::At;
use super::file_path;
use crate::built_in::core::persistent_volume_claim;
use crate::built_in::core::pod::validate as pod;

/// One sort of source: the field, the name that errors inside it go by, and that of a second source. Kubernetes
/// spells some of them in its own way.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) field: &'static str,
    inside: &'static str,
    /// What it is called where it is one too many; empty where it never is.
    surplus: &'static str,
    check: CheckSource,
}

type CheckSource = fn(&At<'_, '_>, &mut ErrorList);

const fn source(field: &'static str, check: CheckSource) -> Source {
    Source { field, inside: field, surplus: field, check }
}

const GCE: Source = Source { inside: "persistentDisk", ..source("gcePersistentDisk", gce) };
const CEPH: Source =
    Source { surplus: "cephFS", ..source("cephfs", |at, errors| lists(at, &["monitors"], errors)) };
const AWS: Source = source("awsElasticBlockStore", aws);
const NFS: Source = source("nfs", nfs);
const RBD: Source = source("rbd", rbd);
const FLOCKER: Source = source("flocker", flocker);
const QUOBYTE: Source = source("quobyte", quobyte);
const FC: Source = source("fc", fc);
const FLEX: Source = source("flexVolume", flex);
const VSPHERE: Source = source("vsphereVolume", |at, errors| texts(at, &["volumePath"], errors));
const PHOTON: Source = source("photonPersistentDisk", |at, errors| texts(at, &["pdID"], errors));
const PORTWORX: Source = source("portworxVolume", |at, errors| texts(at, &["volumeID"], errors));
const AZURE_DISK: Source = source("azureDisk", azure_disk);
const SCALE_IO: Source =
    source("scaleIO", |at, errors| texts(at, &["gateway", "system", "volumeName"], errors));
const GLUSTER: Source = source("glusterfs", |at, errors| texts(at, &["endpoints", "path"], errors));
const AZURE_FILE: Source = source("azureFile", |at, errors| texts(at, &["secretName", "shareName"], errors));
const HOST_PATH: Source = source("hostPath", host_path);

/// Sources of a pod's volume that need nothing but themselves, in the order of the checks.
pub(crate) const OF_POD: &[Source] = &[
    source("emptyDir", empty_dir),
    HOST_PATH,
    source("gitRepo", git_repo),
    GCE,
    AWS,
    source("secret", |at, errors| {
        texts(at, &["secretName"], errors);
        file_path::mode(&at.field("defaultMode"), errors);
        file_path::items(&at.field("items"), errors);
    }),
    NFS,
    source("iscsi", iscsi::of_pod),
    GLUSTER,
    FLOCKER,
    source("persistentVolumeClaim", |at, errors| texts(at, &["claimName"], errors)),
    RBD,
    source("cinder", |at, errors| {
        texts(at, &["volumeID"], errors);
        secret_reference(at, &["name"], errors);
    }),
    CEPH,
    QUOBYTE,
    Source { surplus: "downwarAPI", ..source("downwardAPI", pod::downward_volume) },
    FC,
    FLEX,
    source("configMap", |at, errors| {
        texts(at, &["name"], errors);
        file_path::mode(&at.field("defaultMode"), errors);
        file_path::items(&at.field("items"), errors);
    }),
    AZURE_FILE,
    VSPHERE,
    PHOTON,
    PORTWORX,
    AZURE_DISK,
    source("storageos", |at, errors| {
        storage_os(at, errors);
        secret_reference(at, &["name"], errors);
    }),
    source("projected", pod::projected_volume),
    SCALE_IO,
    source("csi", csi_inline),
    source("ephemeral", persistent_volume_claim::check_ephemeral_volume),
    source("image", |at, errors| {
        at.field("pullPolicy").required_one_of(errors, &["Always", "IfNotPresent", "Never"]);
    }),
];

/// Sources of a persistent volume, in the order of the checks.
pub(crate) const OF_PERSISTENT_VOLUME: &[Source] = &[
    HOST_PATH,
    GCE,
    AWS,
    source("glusterfs", |at, errors| {
        texts(at, &["endpoints", "path"], errors);
        let namespace = at.field("endpointsNamespace");
        if namespace.is_set() && namespace.text().is_empty() {
            let problem = "if the endpointnamespace is set, it must be a valid namespace name";
            namespace.invalid_text(errors, problem);
        } else if namespace.is_set() {
            namespace.is_format(errors, Format::Dns1123Label);
        }
    }),
    FLOCKER,
    NFS,
    RBD,
    QUOBYTE,
    CEPH,
    source("iscsi", iscsi::of_persistent_volume),
    source("cinder", |at, errors| {
        texts(at, &["volumeID"], errors);
        secret_reference(at, &["name", "namespace"], errors);
    }),
    FC,
    // Kubernetes: this one is welcome beside others.
    Source { surplus: "", ..FLEX },
    AZURE_FILE,
    VSPHERE,
    PHOTON,
    PORTWORX,
    AZURE_DISK,
    SCALE_IO,
    source("local", local),
    source("storageos", |at, errors| {
        storage_os(at, errors);
        secret_reference(at, &["name", "namespace"], errors);
    }),
    source("csi", csi),
];

/// Exactly one source, and that one right.
pub(crate) fn check(volume: &At<'_, '_>, sources: &[Source], errors: &mut ErrorList) {
    check_with(volume, sources, errors, |_, _| {});
}

/// The same, and what else the source asks for. Kubernetes: of several sources, only the first is looked at.
pub(crate) fn check_with(
    volume: &At<'_, '_>,
    sources: &[Source],
    errors: &mut ErrorList,
    also: impl Fn(&str, &mut ErrorList),
) {
    let mut found = false;
    for source in sources.iter().filter(|source| volume.has(source.field)) {
        if found && !source.surplus.is_empty() {
            volume.field(source.surplus).forbidden(errors, "may not specify more than 1 volume type");
            continue;
        }
        found = true;
        let value = volume.field(source.field);
        (source.check)(&At::new(value.value(), volume.path().child(source.inside)), errors);
        also(source.field, errors);
    }
    if !found {
        volume.required(errors, "must specify a volume type");
    }
}

fn texts(at: &At<'_, '_>, fields: &[&str], errors: &mut ErrorList) {
    for field in fields.iter().filter(|field| at.text_of(field).is_empty()) {
        at.field(field).required(errors, "");
    }
}

fn lists(at: &At<'_, '_>, fields: &[&str], errors: &mut ErrorList) {
    for field in fields.iter().filter(|field| at.field(field).is_empty()) {
        at.field(field).required(errors, "");
    }
}

fn secret_reference(at: &At<'_, '_>, fields: &[&str], errors: &mut ErrorList) {
    let secret = at.field("secretRef");
    if secret.is_set() {
        texts(&secret, fields, errors);
    }
}

fn empty_dir(at: &At<'_, '_>, errors: &mut ErrorList) {
    let limit = at.field("sizeLimit");
    if limit.quantity().is_some_and(|limit| limit.is_negative()) {
        limit.forbidden(errors, "SizeLimit field must be a valid resource quantity");
    }
}

fn host_path(at: &At<'_, '_>, errors: &mut ErrorList) {
    let path = at.field("path");
    if path.text().is_empty() {
        path.required(errors, "");
        return;
    }
    file_path::no_backsteps(&path, path.text(), errors);
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    at.field("type").optional_one_of(errors, &TYPES);
}

fn git_repo(at: &At<'_, '_>, errors: &mut ErrorList) {
    texts(at, &["repository"], errors);
    file_path::descending(&at.field("directory"), errors);
}

fn partition(at: &At<'_, '_>, errors: &mut ErrorList) {
    let partition = at.field("partition");
    if !(0..=255).contains(&partition.int()) {
        partition.invalid_int(errors, "must be between 1 and 255, inclusive");
    }
}

fn gce(at: &At<'_, '_>, errors: &mut ErrorList) {
    texts(at, &["pdName"], errors);
    partition(at, errors);
}

fn aws(at: &At<'_, '_>, errors: &mut ErrorList) {
    texts(at, &["volumeID"], errors);
    partition(at, errors);
}

fn nfs(at: &At<'_, '_>, errors: &mut ErrorList) {
    texts(at, &["server", "path"], errors);
    let path = at.field("path");
    if !path.text().starts_with('/') {
        path.invalid_text(errors, "must be an absolute path");
    }
}

fn rbd(at: &At<'_, '_>, errors: &mut ErrorList) {
    lists(at, &["monitors"], errors);
    texts(at, &["image"], errors);
}

fn lun(lun: &At<'_, '_>, errors: &mut ErrorList) {
    for problem in name::range_problems(lun.int(), 0, 255) {
        lun.invalid_int(errors, problem);
    }
}

fn fc(at: &At<'_, '_>, errors: &mut ErrorList) {
    let targets = at.field("targetWWNs");
    match (targets.is_empty(), at.field("wwids").is_empty()) {
        (true, true) => targets.required(errors, "must specify either targetWWNs or wwids, but not both"),
        (false, false) => {
            targets.invalid(errors, "targetWWNs and wwids can not be specified simultaneously");
        }
        _ => {}
    }
    if targets.is_empty() {
        return;
    }
    match at.field("lun") {
        missing if !missing.is_set() => {
            missing.required(errors, "lun is required if targetWWNs is specified")
        }
        given => lun(&given, errors),
    }
}

fn flocker(at: &At<'_, '_>, errors: &mut ErrorList) {
    let name = at.field("datasetName");
    match (name.text().is_empty(), at.text_of("datasetUUID").is_empty()) {
        (true, true) => at.required(errors, "one of datasetName and datasetUUID is required"),
        (false, false) => {
            let problem = "datasetName and datasetUUID can not be specified simultaneously";
            at.invalid_as(errors, "resource", problem);
        }
        _ => {}
    }
    if name.text().contains('/') {
        name.invalid_text(errors, "must not contain '/'");
    }
}

fn quobyte(at: &At<'_, '_>, errors: &mut ErrorList) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = at.field("registry");
    if registry.text().is_empty() {
        registry.required(errors, PAIRS);
    } else if at.text_of("tenant").len() >= 65 {
        let problem = "must be a UUID and may not exceed a length of 64 characters";
        at.field("tenant").required(errors, problem);
    } else {
        for _ in registry.text().split(',').filter(|pair| !api::go::is_host_and_port(pair)) {
            registry.invalid_text(errors, PAIRS);
        }
    }
    texts(at, &["volume"], errors);
}

fn flex(at: &At<'_, '_>, errors: &mut ErrorList) {
    texts(at, &["driver"], errors);
    let options = at.field("options");
    for (key, option) in options.entries() {
        let domain = key.split_once('/').map_or(key, |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let problem = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(Error::invalid(option.path(), key, problem));
        }
    }
}

fn azure_disk(at: &At<'_, '_>, errors: &mut ErrorList) {
    texts(at, &["diskName", "diskURI"], errors);
    at.field("cachingMode").optional_one_of(errors, &["None", "ReadOnly", "ReadWrite"]);
    at.field("kind").optional_one_of(errors, &["Dedicated", "Managed", "Shared"]);
    let uri = at.field("diskURI");
    let (start, form) = match at.text_of("kind") {
        "" => return,
        "Managed" => (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ),
        _ => ("https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"),
    };
    if !uri.text().starts_with(start) {
        uri.unsupported(errors, &[form]);
    }
}

fn storage_os(at: &At<'_, '_>, errors: &mut ErrorList) {
    at.field("volumeName").required_format(errors, Format::Dns1123Label);
    if !at.text_of("volumeNamespace").is_empty() {
        at.field("volumeNamespace").is_format(errors, Format::Dns1123Label);
    }
}

fn local(at: &At<'_, '_>, errors: &mut ErrorList) {
    let path = at.field("path");
    if path.text().is_empty() {
        path.required(errors, "");
    } else {
        file_path::no_backsteps(&path, path.text(), errors);
    }
}

pub(crate) fn csi_driver_name(driver: &At<'_, '_>, errors: &mut ErrorList) {
    const LONGEST: usize = 63;
    if driver.text().is_empty() {
        driver.required(errors, "");
        return;
    }
    if driver.text().len() > LONGEST {
        errors.push(Error::too_long(driver.path(), LONGEST));
    }
    for problem in Format::Dns1123Subdomain.problems(&driver.text().to_lowercase()) {
        driver.invalid_text(errors, problem);
    }
}

fn csi_inline(at: &At<'_, '_>, errors: &mut ErrorList) {
    csi_driver_name(&at.field("driver"), errors);
    let secret = at.field("nodePublishSecretRef");
    if secret.is_set() && secret.text_of("name").is_empty() {
        secret.field("name").required(errors, "");
    } else if secret.is_set() {
        errors.extend(Format::Dns1123Subdomain.check(&at.path().child("name"), secret.text_of("name")));
    }
}

fn csi(at: &At<'_, '_>, errors: &mut ErrorList) {
    csi_driver_name(&at.field("driver"), errors);
    texts(at, &["volumeHandle"], errors);
    for field in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let secret = at.field(field);
        if secret.is_set() {
            secret.field("name").required_format(errors, Format::Dns1123Subdomain);
            secret.field("namespace").required_format(errors, Format::Dns1123Label);
        }
    }
}
