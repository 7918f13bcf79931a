//! Projects of operators: their names, their files and the templates of these.
//!
//! | file | what happens there |
//! |---|---|
//! | `names` | the rules for names of projects, groups, versions and kinds |
//! | `template` | a text with places to fill |
//! | `project` | `setpoint.yaml`: what a project has |
//! | `files` | writes files, and keeps those that people have edited |
//! | `rust`, `go` | which files a project and a kind have |
//! | `toolchain` | builds, tests and runs a project |
//! | `manifests` | the YAML documents of an operator, as files for kustomize and Helm |
//! | `generated` | remembers which files were generated, so that edited ones are kept |
//! | `cluster_objects` | applies documents to a cluster, and waits for them |

pub(crate) mod cluster_objects;
pub(crate) mod files;
pub(crate) mod generated;
pub(crate) mod go;
pub(crate) mod manifests;
pub(crate) mod names;
pub(crate) mod project;
pub(crate) mod rust;
pub(crate) mod template;
pub(crate) mod toolchain;
