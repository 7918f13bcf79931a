//! Container images for the official tests, made from programs of published Go modules and of this machine: no registry is
//! asked. What stands in for another program is said when it is made.

use crate::{interop, tools};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

const SUITE: &str = "registry.k8s.io/e2e-test-images";
/// Of this machine: tests run them in the image `agnhost`.
const TOOLS: [&str; 4] = ["bash", "curl", "getent", "ss"];
const PASSWD: &str = "\
root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/:/bin/false
user-defined-in-image:x:1000:1000::/home:/bin/sh
";
// A test looks for this group.
const GROUP: &str = "\
root:x:0:
nogroup:x:65534:
user-defined-in-image:x:1000:
group-defined-in-image:x:50000:user-defined-in-image
";
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// An image: its names, its layers and how it is run.
struct Image {
    name: String,
    layers: Vec<&'static str>,
    config: Value,
}

/// Makes the images in `folder`; returns their archives.
pub(crate) fn make(folder: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder)?;
    make_layers(folder)?;
    let mut archives = Vec::new();
    for image in images() {
        archives.push(image.archive(folder).with_context(|| image.name.clone())?);
    }
    Ok(archives)
}

fn images() -> Vec<Image> {
    let image = |name: String, layers: &[&'static str], config: Value| Image {
        name,
        layers: layers.to_vec(),
        config,
    };
    let of_suite =
        |name: &str, layers: &[&'static str], config: Value| image(format!("{SUITE}/{name}"), layers, config);
    let agnhost = json!({"Entrypoint": ["/agnhost"], "Cmd": ["pause"]});
    let with = |key: &str, value: Value| {
        let mut config = agnhost.clone();
        config[key] = value;
        config
    };
    let tools = ["base", "tools", "agnhost"];
    let web = json!({"Cmd": ["busybox", "httpd", "-f", "-p", "80", "-h", "/usr/share/nginx/html"]});
    let mut newer_web = web.clone();
    newer_web["Labels"] = json!({"version": "newer"});
    vec![
        image("registry.k8s.io/pause:3.10.2".to_owned(), &["pause"], json!({"Entrypoint": ["/pause"]})),
        image(
            "registry.k8s.io/coredns/coredns:v1.14.2".to_owned(),
            &["coredns"],
            json!({"Entrypoint": ["/coredns"]}),
        ),
        of_suite("busybox:1.37.0-1", &["base"], json!({"Cmd": ["sh"]})),
        of_suite("agnhost:2.63.0", &tools, agnhost.clone()),
        of_suite("agnhost:2.55", &tools, with("Labels", json!({"version": "older"}))),
        of_suite("glibc-dns-testing:2.0.0", &["base", "tools"], json!({"Cmd": ["sleep", "infinity"]})),
        of_suite("nonewprivs:1.4", &["base", "nonewprivs"], json!({"Cmd": ["nnp"]})),
        of_suite("nonroot:1.5", &tools, with("User", "1234".into())),
        of_suite(
            "kitten:1.8",
            &["base", "tools", "agnhost", "kitten"],
            with("Cmd", json!(["test-webserver"])),
        ),
        of_suite(
            "nautilus:1.8",
            &["base", "tools", "agnhost", "nautilus"],
            with("Cmd", json!(["test-webserver"])),
        ),
        of_suite("nginx:1.15-4", &["base", "web"], web),
        of_suite("nginx:1.27-0", &["base", "web"], newer_web),
    ]
}

/// The layers, each as a folder and as an archive of it.
fn make_layers(folder: &Path) -> Result<()> {
    let sources = test_images()?;
    let pause = Layer::new(folder, "pause")?;
    let source = tools::root()?.join("interop/images/pause.c");
    let mut compile = Command::new("cc");
    finish(compile.args(["-static", "-Os", "-s", "-o"]).arg(pause.path("pause")).arg(source))
        .context("the image `pause` needs a C compiler (on Debian: apt-get install gcc libc6-dev)")?;
    let base = Layer::new(folder, "base")?;
    base.add_busybox()?;
    let tools = Layer::new(folder, "tools")?;
    tools.add_tools()?;
    let agnhost = Layer::new(folder, "agnhost")?;
    agnhost.program(&interop::build(&["agnhost"])?[0], "agnhost")?;
    symlink("agnhost", agnhost.path("agnhost-2"))?;
    agnhost.folder("uploads")?;
    for name in ["localhost.crt", "localhost.key"] {
        agnhost.file(&sources.join("agnhost/porter").join(name), name)?;
    }
    let privileges = Layer::new(folder, "nonewprivs")?;
    privileges.program(&interop::build(&["nnp"])?[0], "usr/local/bin/nnp")?;
    // Its test is whether this has an effect.
    let runs_as_owner = fs::Permissions::from_mode(0o6755);
    fs::set_permissions(privileges.path("usr/local/bin/nnp"), runs_as_owner)?;
    Layer::new(folder, "coredns")?.program(&interop::build(&["coredns"])?[0], "coredns")?;
    for name in ["kitten", "nautilus"] {
        let layer = Layer::new(folder, name)?;
        for file in [&format!("{name}.jpg"), "data.json"] {
            layer.file(&sources.join(name).join("html").join(file), file)?;
        }
    }
    let web = Layer::new(folder, "web")?;
    web.write("usr/share/nginx/html/index.html", "<h1>a web server of busybox</h1>\n")?;
    println!("nginx: busybox's httpd stands in, which serves the same folder");
    println!("agnhost 2.55: built from the source of 2.63.0");
    for name in ["pause", "base", "tools", "agnhost", "nonewprivs", "coredns", "kitten", "nautilus", "web"] {
        tar(&folder.join(name), &folder.join(format!("{name}.tar")))?;
    }
    Ok(())
}

/// The published sources of the images.
fn test_images() -> Result<PathBuf> {
    let output = interop::go()?.args(["list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"]).output()?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()).join("test/images"))
}

/// What one layer adds to an image.
struct Layer(PathBuf);

impl Layer {
    /// Empty.
    fn new(folder: &Path, name: &str) -> Result<Layer> {
        let path = folder.join(name);
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir_all(&path)?;
        Ok(Layer(path))
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.0.join(inside.trim_start_matches('/'))
    }

    fn folder(&self, inside: &str) -> Result<()> {
        Ok(fs::create_dir_all(self.path(inside))?)
    }

    fn write(&self, inside: &str, text: &str) -> Result<()> {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        Ok(fs::write(path, text)?)
    }

    fn file(&self, source: &Path, inside: &str) -> Result<()> {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        fs::copy(source, &path).with_context(|| source.display().to_string())?;
        Ok(fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?)
    }

    fn write_bytes(&self, inside: &str, program: &[u8]) -> Result<()> {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        fs::write(&path, program)?;
        Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
    }

    fn program(&self, source: &Path, inside: &str) -> Result<()> {
        self.file(source, inside)?;
        Ok(fs::set_permissions(self.path(inside), fs::Permissions::from_mode(0o755))?)
    }

    /// A shell and the usual commands, all of them the busybox of this machine.
    fn add_busybox(&self) -> Result<()> {
        let busybox = busybox()?;
        if !libraries(&busybox)?.is_empty() {
            bail!("the busybox of this machine is not static (on Debian: apt-get install busybox-static)");
        }
        self.program(&busybox, "bin/busybox")?;
        let list = finish(Command::new(&busybox).arg("--list"))?;
        for name in list.lines().filter(|name| *name != "busybox") {
            symlink("busybox", self.path("bin").join(name))?;
        }
        for folder in ["dev", "etc", "proc", "sys", "root", "home", "usr/bin", "var/run", "tmp"] {
            self.folder(folder)?;
        }
        fs::set_permissions(self.path("tmp"), fs::Permissions::from_mode(0o1777))?;
        self.write("etc/passwd", PASSWD)?;
        self.write("etc/group", GROUP)
    }

    /// Programs of this machine with their libraries, and what stands in for the others.
    fn add_tools(&self) -> Result<()> {
        for name in TOOLS {
            let Some(path) = tools::on_path(name) else {
                println!("{name}: not on this machine; tests that need it fail");
                continue;
            };
            self.program(&path, &format!("usr/bin/{name}"))?;
            for library in libraries(&path)? {
                self.program(Path::new(&library), &library)?;
            }
        }
        self.write_bytes("bin/busybox", &without_netcat(fs::read(busybox()?)?)?)?;
        symlink("/usr/bin/bash", self.path("bin/bash"))?;
        self.program(&tools::root()?.join("interop/images/nc.sh"), "usr/local/bin/nc")?;
        self.program(&interop::build(&["dig"])?[0], "usr/bin/dig")?;
        println!("dig: a program of ours stands in (interop/coredns/dig)");
        println!("netcat: a script stands in (interop/images/nc.sh)");
        Ok(())
    }
}

fn busybox() -> Result<PathBuf> {
    tools::on_path("busybox")
        .context("the images need a static busybox (on Debian: apt-get install busybox-static)")
}

/// busybox with its netcat by the name of `nb`: its shell prefers what is in itself to what is on PATH, and that has too few
/// options. The names in the program are sorted, and stay so.
fn without_netcat(mut program: Vec<u8>) -> Result<Vec<u8>> {
    const NAMES: &[u8] = b"\0nameif\0nc\0netstat\0";
    let at = program.windows(NAMES.len()).position(|window| window == NAMES);
    let at = at.context("this busybox has other programs than Debian's")?;
    program[at + b"\0nameif\0n".len()] = b'b';
    Ok(program)
}

/// The files that a program loads when it starts.
fn libraries(program: &Path) -> Result<Vec<String>> {
    let output = Command::new("ldd").arg(program).output().context("ldd")?;
    Ok(parse_libraries(&String::from_utf8_lossy(&output.stdout)))
}

/// Lines are `NAME => PATH (ADDRESS)`, or `PATH (ADDRESS)`.
fn parse_libraries(text: &str) -> Vec<String> {
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(str::to_owned);
    text.lines().filter(|line| line.contains(" (0x")).filter_map(path).collect()
}

impl Image {
    /// As `docker save` writes images, which containerd imports.
    fn archive(&self, folder: &Path) -> Result<PathBuf> {
        let short: String =
            self.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let parts = folder.join(format!("image-{short}"));
        if parts.exists() {
            fs::remove_dir_all(&parts)?;
        }
        fs::create_dir_all(&parts)?;
        let mut digests = Vec::new();
        for layer in &self.layers {
            let archive = folder.join(format!("{layer}.tar"));
            fs::hard_link(&archive, parts.join(format!("{layer}.tar")))?;
            let sum = finish(Command::new("sha256sum").arg(&archive))?;
            digests.push(format!("sha256:{}", sum.split(' ').next().unwrap_or_default()));
        }
        let mut config = self.config.clone();
        config["Env"] = json!([PATH]);
        let config = json!({
            "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }, "os": "linux",
            "config": config, "rootfs": {"type": "layers", "diff_ids": digests},
        });
        fs::write(parts.join("config.json"), config.to_string())?;
        let layers: Vec<_> = self.layers.iter().map(|layer| format!("{layer}.tar")).collect();
        let manifest = json!([{"Config": "config.json", "RepoTags": [self.name], "Layers": layers}]);
        fs::write(parts.join("manifest.json"), manifest.to_string())?;
        let archive = folder.join(format!("image-{short}.tar"));
        tar(&parts, &archive)?;
        fs::remove_dir_all(&parts)?;
        Ok(archive)
    }
}

/// Everything in a folder, as root's, in an order and with times that are always the same.
fn tar(folder: &Path, archive: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mtime=@0",
        "--hard-dereference",
        "-cf",
    ]);
    finish(tar.arg(archive).arg("-C").arg(folder).arg(".")).map(drop)
}

/// What a program prints, if it succeeds.
fn finish(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_of_a_program_are_the_paths_that_ldd_prints() {
        let text = "\tlinux-vdso.so.1 (0x1)\n\tlibz.so.1 => /lib/libz.so.1 (0x2)\n\t/lib64/ld.so.2 (0x3)\n";
        assert_eq!(parse_libraries(text), ["/lib/libz.so.1", "/lib64/ld.so.2"]);
        assert!(parse_libraries("\tnot a dynamic executable\n").is_empty());
    }

    #[test]
    fn the_netcat_of_busybox_has_another_name() {
        let renamed = without_netcat(b"ELF\0nameif\0nc\0netstat\0".to_vec()).unwrap();
        assert_eq!(renamed, b"ELF\0nameif\0nb\0netstat\0");
        assert!(without_netcat(b"ELF".to_vec()).is_err());
    }

    #[test]
    fn images_of_the_same_layers_differ_in_how_they_are_run() {
        let images = images();
        for (at, image) in images.iter().enumerate() {
            assert!(
                images[..at]
                    .iter()
                    .all(|other| (&other.layers, &other.config) != (&image.layers, &image.config)),
                "{}",
                image.name
            );
        }
    }
}
