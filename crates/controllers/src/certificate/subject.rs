//! The subject of a request, reduced to the attributes that Kubernetes signs.

use x509_parser::{
    asn1_rs::{Any, Class, Tag},
    x509::{AttributeTypeAndValue, X509Name},
};
use yasna::{DERWriter, models::ObjectIdentifier};

/// The values of each attribute of [`SIGNED`], in the order of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestSubject([Vec<String>; SIGNED.len()]);

/// The attributes that are signed, in the order of the certificate. A UID in the subject would be the UID of the user:
/// like all others it is left out.
// Kubernetes: those of Go's `pkix.Name`.
const SIGNED: [Attribute; 9] = [
    Attribute { oid: &[2, 5, 4, 6], is_single: false },
    Attribute { oid: &[2, 5, 4, 10], is_single: false },
    Attribute { oid: &[2, 5, 4, 11], is_single: false },
    Attribute { oid: &[2, 5, 4, 7], is_single: false },
    Attribute { oid: &[2, 5, 4, 8], is_single: false },
    Attribute { oid: &[2, 5, 4, 9], is_single: false },
    Attribute { oid: &[2, 5, 4, 17], is_single: false },
    Attribute { oid: &[2, 5, 4, 3], is_single: true },
    Attribute { oid: &[2, 5, 4, 5], is_single: true },
];
const ORGANIZATION: usize = 1;
const COMMON_NAME: usize = 7;

struct Attribute {
    oid: &'static [u64],
    /// Of several values the last counts.
    is_single: bool,
}

impl RequestSubject {
    pub(super) fn read(name: &X509Name<'_>) -> Result<RequestSubject, &'static str> {
        let mut subject = RequestSubject::default();
        for attribute in name.iter_attributes() {
            let Some(at) = SIGNED.iter().position(|signed| is(attribute, signed)) else { continue };
            let values = &mut subject.0[at];
            if SIGNED[at].is_single {
                values.clear();
            }
            values.push(text_of(attribute.attr_value())?);
        }
        Ok(subject)
    }

    /// The user name of a client certificate.
    pub(super) fn common_name(&self) -> &str {
        self.0[COMMON_NAME].first().map_or("", String::as_str)
    }

    /// The groups of a client certificate.
    pub(super) fn organizations(&self) -> &[String] {
        &self.0[ORGANIZATION]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }

    /// Writes it as a `Name`: a set for each attribute that has values.
    pub(super) fn write(&self, writer: DERWriter<'_>) {
        writer.write_sequence(|writer| {
            for (attribute, values) in SIGNED.iter().zip(&self.0).filter(|(_, values)| !values.is_empty()) {
                writer.next().write_set_of(|writer| {
                    for value in values {
                        writer.next().write_sequence(|writer| {
                            writer.next().write_oid(&ObjectIdentifier::from_slice(attribute.oid));
                            writer.next().write_utf8_string(value);
                        });
                    }
                });
            }
        });
    }
}

fn is(attribute: &AttributeTypeAndValue<'_>, signed: &Attribute) -> bool {
    attribute.attr_type().iter().is_some_and(|mut oid| oid.by_ref().eq(signed.oid.iter().copied()))
}

/// The text of a value, in each string type that Go reads.
fn text_of(value: &Any<'_>) -> Result<String, &'static str> {
    const UNREADABLE: &str = "the subject holds a text that cannot be read";
    if value.header.is_constructed() || value.class() != Class::Universal {
        return Err(UNREADABLE);
    }
    match value.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::NumericString | Tag::Ia5String | Tag::T61String => {
            std::str::from_utf8(value.data).map(str::to_owned).map_err(|_| UNREADABLE)
        }
        Tag::BmpString => {
            let (units, rest) = value.data.as_chunks::<2>();
            let mut units: Vec<u16> = units.iter().map(|unit| u16::from_be_bytes(*unit)).collect();
            // Go: strips a trailing NUL.
            units.pop_if(|last| *last == 0);
            String::from_utf16(&units).ok().filter(|_| rest.is_empty()).ok_or(UNREADABLE)
        }
        _ => Err(UNREADABLE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use x509_parser::prelude::FromDer;

    const USER_UID: &[u64] = &[1, 3, 6, 1, 4, 1, 57683, 2];

    fn name(attributes: &[(&[u64], &str)]) -> Vec<u8> {
        yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                for (oid, value) in attributes {
                    writer.next().write_set(|writer| {
                        writer.next().write_sequence(|writer| {
                            writer.next().write_oid(&ObjectIdentifier::from_slice(oid));
                            writer.next().write_utf8_string(value);
                        });
                    });
                }
            });
        })
    }

    #[test]
    fn every_group_and_the_last_common_name_are_signed_and_a_uid_is_not() {
        let sent = name(&[
            (SIGNED[COMMON_NAME].oid, "first"),
            (SIGNED[ORGANIZATION].oid, "devs"),
            (USER_UID, "0"),
            (SIGNED[ORGANIZATION].oid, "admins"),
            (SIGNED[COMMON_NAME].oid, "jane"),
        ]);
        let subject = RequestSubject::read(&X509Name::from_der(&sent).unwrap().1).unwrap();
        assert_eq!(
            (subject.common_name(), subject.organizations()),
            ("jane", &["devs".into(), "admins".into()][..])
        );
        let written = yasna::construct_der(|writer| subject.write(writer));
        let (rest, read) = X509Name::from_der(&written).unwrap();
        assert_eq!((rest, read.to_string().as_str()), (&[][..], "O=devs + O=admins, CN=jane"));
    }
}
