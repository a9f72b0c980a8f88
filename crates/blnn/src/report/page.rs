//! Filling the template.

use std::io::{self, Write};

use super::Report;

const TEMPLATE: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/style.css");
const LIBRARY: &str = include_str!("vendor/echarts.common.min.js");

/// The page's scripts, in the order they need each other.
const SCRIPTS: [&str; 7] = [
    include_str!("page/data.js"),
    include_str!("page/theme.js"),
    include_str!("page/charts.js"),
    include_str!("page/points.js"),
    include_str!("page/map.js"),
    include_str!("page/controls.js"),
    include_str!("page/main.js"),
];

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut rest = TEMPLATE;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, after)) = after.split_once("}}") else {
            break;
        };
        out.write_all(before.as_bytes())?;
        write_part(name, report, out)?;
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

/// What stands in the place of `{{name}}`. It is never searched for names itself.
fn write_part(name: &str, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    match name {
        "title" => out.write_all(text(&report.title).as_bytes()),
        "style" => out.write_all(STYLE.as_bytes()),
        "library" => out.write_all(LIBRARY.as_bytes()),
        "scripts" => SCRIPTS.iter().try_for_each(|script| out.write_all(script.as_bytes())),
        "data" => {
            let json = serde_json::to_string(report).map_err(io::Error::other)?;
            out.write_all(inside_script(&json).as_bytes())
        }
        other => Err(io::Error::other(format!("the template asks for `{other}`"))),
    }
}

/// As the text of an HTML element.
fn text(raw: &str) -> String {
    raw.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// JSON as the contents of a script element. Nothing in it can end the element or start a comment,
/// since `<`, `>` and `&` stand only inside strings, where JSON has another way to write them.
fn inside_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Map, Packed};
    use blnn_kernels::Matrix;

    fn hostile() -> Report {
        let evil = "</script><script>alert(1)</script><!-- {{data}} & \"'".to_owned();
        let (x, y) = Map::positions(&Matrix::zeros(1, 2));
        Report {
            title: evil.clone(),
            subtitle: evil.clone(),
            config: evil.clone(),
            map: Some(Map {
                note: evil.clone(),
                nodes: 1,
                ids: Some(vec![evil]),
                x,
                y,
                colourings: vec![],
                neighbours: Packed::numbers(&[]),
                cosines: Packed::numbers(&[]),
            }),
            ..Report::default()
        }
    }

    fn page(report: &Report) -> String {
        let mut out = Vec::new();
        report.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn no_text_leaves_its_place() {
        let (plain, hostile) = (page(&Report::default()), page(&hostile()));
        for tag in ["<script", "</script", "<!--"] {
            assert_eq!(plain.matches(tag).count(), hostile.matches(tag).count(), "{tag}");
        }
        assert!(!hostile.contains("alert(1)</script>"));
    }

    #[test]
    fn the_data_reads_back() {
        let report = hostile();
        let page = page(&report);
        let (_, after) = page.split_once("type=\"application/json\">").unwrap();
        let (json, _) = after.split_once("</script>").unwrap();
        let back: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(back["subtitle"], report.subtitle);
        assert_eq!(back["map"]["ids"][0], report.subtitle);
    }

    #[test]
    fn the_page_names_no_other_place() {
        // Addresses in the library's comments are never fetched; the page forbids it besides.
        // The name of the SVG format looks like an address and is none.
        let own: String = SCRIPTS.concat() + TEMPLATE + STYLE;
        let own = own.replace("http://www.w3.org/2000/svg", "");
        assert!(!own.contains("http:") && !own.contains("https:"), "a link out");
        assert!(TEMPLATE.contains("default-src 'none'"));
    }

    #[test]
    fn positions_share_one_unit() {
        let points = Matrix::from_vec(3, 2, vec![0.0, 5.0, 4.0, 5.0, 2.0, 6.0]);
        let (x, y) = Map::positions(&points);
        assert_eq!(x, Packed::words([0, 65_535, 32_768].into_iter()));
        assert_eq!(y, Packed::words([0, 0, 16_384].into_iter()));
        let (x, _) = Map::positions(&Matrix::zeros(2, 2));
        assert_eq!(x, Packed::words([0, 0].into_iter()));
    }
}
