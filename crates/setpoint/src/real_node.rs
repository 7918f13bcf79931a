//! What a real kubelet needs to join a cluster: a token, rights, and files.
//!
//! | file | content |
//! |---|---|
//! | `bootstrap_token` | a token with which a machine may ask for the certificate of a node |
//! | `rights` | the roles and bindings that let nodes get their certificates, and the server reach them |
//! | `facts` | what a kubelet has to know of the cluster |
//! | `files` | those facts and a token → the files of a machine |

pub(crate) mod bootstrap_token;
pub(crate) mod facts;
pub(crate) mod files;
pub(crate) mod rights;
