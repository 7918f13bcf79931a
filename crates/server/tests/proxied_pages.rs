//! HTML pages of pods, as the proxy passes them on.

use crate::{
    pod_lab::{PODS, answer, with_lab},
    socket::request,
};

const IP: &str = "10.0.0.7";

#[test]
fn links_in_a_page_of_a_pod_lead_through_the_proxy() {
    with_lab(|lab| async move {
        let page = answer("200 OK", "Content-Type: text/html\r\n", "<a href=\"/x\"><a href=\"/cut");
        let _pod = lab.listen(IP, &[&page], false).await;
        lab.pod("web", IP, 8080).await;
        let found = lab.ask(&request("GET", &format!("{PODS}/web/proxy/"), "", b"")).await;
        let link = format!("<a href=\"{PODS}/web/proxy/x\">");
        assert!(found.contains(&link) && found.contains("<a href=\"/cut"), "{found}");
    });
}
