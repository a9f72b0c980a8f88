//! Pictures as SVG: lines, dots with error bars, and maps of points.
//!
//! Colours are those of Okabe and Ito, which people with any kind of colour vision tell apart.

use std::error::Error as StdError;
use std::ops::Range;

use blnn_kernels::Matrix;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::error::{Error, ErrorKind, Result};

const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(240, 228, 66),
    RGBColor(90, 90, 90),
];
const OURS: RGBColor = COLOURS[0];
const PUBLISHED: RGBColor = COLOURS[4];
const INK: RGBColor = RGBColor(40, 40, 40);
const GRID: RGBColor = RGBColor(225, 225, 225);
const FONT: &str = "sans-serif";
const SIZE: (u32, u32) = (680, 460);

type Drawn = std::result::Result<(), Box<dyn StdError>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    /// Its name in the legend.
    pub(super) name: String,
    /// Its points from left to right.
    pub(super) points: Vec<(f64, f64)>,
}

/// A category of a dot plot: our number with its spread, and the published one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dot {
    /// Its name below the axis.
    pub(super) name: String,
    /// Ours.
    pub(super) ours: Option<(f64, Option<f64>)>,
    /// The published number.
    pub(super) published: Option<f64>,
}

/// The words around a picture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    /// Above it.
    pub(super) title: &'a str,
    /// Along the horizontal axis.
    pub(super) x: &'a str,
    /// Along the vertical axis.
    pub(super) y: &'a str,
}

/// Curves over a common axis, each with a mark at every point; a level to compare with (two
/// points of one height) is dashed.
pub(super) fn lines(words: Words<'_>, lines: &[Line]) -> Result<String> {
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let x = padded(points().map(|p| p.0), 0.02);
    let y = padded(points().map(|p| p.1), 0.08);
    draw(SIZE, |root| {
        let mut chart = axes(root, words, x, y, 10)?;
        for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
            draw_line(&mut chart, line, *colour)?;
        }
        let mark = |line: &Line| if is_level(line) { Mark::Dashes } else { Mark::Line };
        let keys = lines.iter().zip(COLOURS.iter().cycle());
        let keys = keys.map(|(line, colour)| (line.name.as_str(), *colour, mark(line)));
        legend(root, &keys.collect::<Vec<_>>())
    })
}

fn draw_line(chart: &mut Chart<'_, '_>, line: &Line, colour: RGBColor) -> Drawn {
    let points = line.points.iter().copied();
    if is_level(line) {
        chart.draw_series(DashedLineSeries::new(points, 7, 5, colour.stroke_width(2)))?;
        return Ok(());
    }
    chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
    chart.draw_series(points.map(|point| Circle::new(point, 3, colour.filled())))?;
    Ok(())
}

fn is_level(line: &Line) -> bool {
    matches!(line.points.as_slice(), [from, to] if from.1 == to.1)
}

/// Dots with error bars, a place for each category. Dots, not bars: the axis does not start at 0.
pub(super) fn dots(words: Words<'_>, dots: &[Dot]) -> Result<String> {
    let ours = |dot: &Dot| {
        let (mean, spread) = (dot.ours?.0, dot.ours?.1.unwrap_or(0.0));
        Some([mean - spread, mean + spread])
    };
    let values = dots.iter().flat_map(|d| ours(d).into_iter().flatten().chain(d.published));
    let y = padded(values, 0.15);
    let bottom = y.start;
    draw(SIZE, |root| {
        let mut chart = axes(root, words, 0.0..dots.len() as f64, y, 0)?;
        for (i, dot) in dots.iter().enumerate() {
            draw_name(&mut chart, &dot.name, (i as f64 + 0.5, bottom))?;
        }
        draw_ours(&mut chart, dots)?;
        draw_published(&mut chart, dots)?;
        let keys = [("ours", OURS, Mark::Circle), ("published", PUBLISHED, Mark::Triangle)];
        let shown = if dots.iter().any(|d| d.published.is_some()) { 2 } else { 1 };
        legend(root, &keys[..shown])
    })
}

/// The name of a category below its place, a few words a line.
fn draw_name(chart: &mut Chart<'_, '_>, name: &str, place: (f64, f64)) -> Drawn {
    let style = (FONT, 13).into_font().color(&INK).pos(Pos::new(HPos::Center, VPos::Top));
    let line = |(number, text): (usize, String)| {
        EmptyElement::at(place) + Text::new(text, (0, 8 + 15 * number as i32), style.clone())
    };
    chart.draw_series(wrapped(name, 12).into_iter().enumerate().map(line))?;
    Ok(())
}

/// Words in lines of at most so many characters, or of one word.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                *line += " ";
                *line += word;
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Whether our number is the upper one: the two stand on the far sides of their marks, so that
/// they never meet.
fn ours_is_upper(dot: &Dot) -> bool {
    dot.ours.zip(dot.published).is_none_or(|((ours, _), published)| ours >= published)
}

/// A number above or below a mark.
fn number(value: f64, above: bool, colour: &RGBColor) -> Text<'_, (i32, i32), String> {
    let (side, offset) = if above { (VPos::Bottom, -9) } else { (VPos::Top, 9) };
    let style = TextStyle::from((FONT, 13).into_font()).color(colour);
    Text::new(format!("{value:.2}"), (0, offset), style.pos(Pos::new(HPos::Center, side)))
}

fn draw_ours(chart: &mut Chart<'_, '_>, dots: &[Dot]) -> Drawn {
    let colour = OURS;
    for (i, dot) in dots.iter().enumerate() {
        let Some((mean, spread)) = dot.ours else { continue };
        let (x, spread) = (i as f64 + 0.4, spread.unwrap_or(0.0));
        let bar = [(x, mean - spread), (x, mean + spread)];
        let upper = ours_is_upper(dot);
        chart.draw_series([PathElement::new(bar, colour.stroke_width(2))])?;
        chart.draw_series([Circle::new((x, mean), 6, colour.filled())])?;
        let end = EmptyElement::at(bar[usize::from(upper)]) + number(mean, upper, &colour);
        chart.draw_series([end])?;
    }
    Ok(())
}

fn draw_published(chart: &mut Chart<'_, '_>, dots: &[Dot]) -> Drawn {
    let colour = PUBLISHED;
    for (i, dot) in dots.iter().enumerate() {
        let Some(published) = dot.published else { continue };
        let mark = EmptyElement::at((i as f64 + 0.6, published))
            + TriangleMarker::new((0, 0), 7, colour.filled())
            + number(published, !ours_is_upper(dot), &colour);
        chart.draw_series([mark])?;
    }
    Ok(())
}

/// A map of points (one row each), coloured by class. More classes than colours take a second
/// shape.
pub(super) fn map(
    title: &str,
    points: &Matrix,
    labels: &[u32],
    names: &[String],
) -> Result<String> {
    let column = |j: usize| (0..points.rows()).map(move |i| f64::from(points.get(i, j)));
    let (x, y) = (padded(column(0), 0.02), padded(column(1), 0.02));
    let classes = labels.iter().max().map_or(0, |&top| top as usize + 1);
    draw((820, 620), |root| {
        let mut chart = ChartBuilder::on(root)
            .caption(title, (FONT, 20).into_font().color(&INK))
            .margin(12)
            .right_y_label_area_size(190)
            .build_cartesian_2d(x, y)?;
        for class in 0..classes {
            let members = (0..points.rows()).filter(|&i| labels[i] as usize == class);
            let members =
                members.map(|i| (f64::from(points.get(i, 0)), f64::from(points.get(i, 1))));
            let name = names.get(class).cloned().unwrap_or_else(|| format!("class {class}"));
            draw_class(&mut chart, class, members)?;
            key_of_class(root, class, &name)?;
        }
        Ok(())
    })
}

fn draw_class(
    chart: &mut Chart<'_, '_>,
    class: usize,
    points: impl Iterator<Item = (f64, f64)>,
) -> Drawn {
    let style = COLOURS[class % COLOURS.len()].mix(0.7).filled();
    if class < COLOURS.len() {
        chart.draw_series(points.map(|point| Circle::new(point, 2, style)))?;
    } else {
        chart.draw_series(points.map(|point| TriangleMarker::new(point, 3, style)))?;
    }
    Ok(())
}

/// The legend stands beside the map: inside, it would hide points.
fn key_of_class(root: &Area<'_>, class: usize, name: &str) -> Drawn {
    let style = COLOURS[class % COLOURS.len()].filled();
    let at = (640, 60 + 24 * class as i32);
    if class < COLOURS.len() {
        root.draw(&Circle::new(at, 6, style))?;
    } else {
        root.draw(&TriangleMarker::new(at, 7, style))?;
    }
    let text = (FONT, 14).into_font().color(&INK);
    let text = text.pos(Pos::new(HPos::Left, VPos::Center));
    root.draw(&Text::new(name.to_owned(), (at.0 + 14, at.1), text))?;
    Ok(())
}

fn axes<'a, 'b>(
    root: &'a Area<'b>,
    words: Words<'_>,
    x: Range<f64>,
    y: Range<f64>,
    x_labels: usize,
) -> std::result::Result<Chart<'a, 'b>, Box<dyn StdError>> {
    // The names of categories, which stand in place of labels, take up to three lines.
    let below = if x_labels == 0 { 80 } else { 48 };
    let mut chart = ChartBuilder::on(root)
        .caption(words.title, (FONT, 19).into_font().color(&INK))
        .margin(14)
        .margin_right(24)
        .margin_bottom(34)
        .x_label_area_size(below)
        .y_label_area_size(64)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .x_labels(x_labels)
        .y_labels(8)
        .max_light_lines(0)
        .bold_line_style(GRID)
        .axis_style(INK)
        .x_label_formatter(&tick)
        .y_label_formatter(&tick)
        .x_desc(words.x)
        .y_desc(words.y)
        .axis_desc_style((FONT, 15).into_font().color(&INK))
        .label_style((FONT, 13).into_font().color(&INK))
        .draw()?;
    Ok(chart)
}

/// What marks a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Line,
    Dashes,
    Circle,
    Triangle,
}

/// The legend: a row below everything else, where it hides no data.
fn legend(root: &Area<'_>, keys: &[(&str, RGBColor, Mark)]) -> Drawn {
    let (mut x, y) = (90, SIZE.1 as i32 - 18);
    for (name, colour, mark) in keys {
        let ends = |from: i32, to: i32| {
            PathElement::new([(x + from, y), (x + to, y)], colour.stroke_width(3))
        };
        match mark {
            Mark::Line => root.draw(&ends(0, 22))?,
            Mark::Dashes => {
                root.draw(&ends(0, 9))?;
                root.draw(&ends(14, 23))?;
            }
            Mark::Circle => root.draw(&Circle::new((x + 11, y), 6, colour.filled()))?,
            Mark::Triangle => root.draw(&TriangleMarker::new((x + 11, y), 7, colour.filled()))?,
        }
        let text = (FONT, 14).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new((*name).to_owned(), (x + 30, y), text))?;
        // Widths are those of a common sans-serif face: the font is the viewer's.
        x += 60 + 8 * name.chars().count() as i32;
    }
    Ok(())
}

/// A number on an axis, without zeros nobody needs.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "what the axes call it with")]
fn tick(value: &f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn draw(size: (u32, u32), picture: impl FnOnce(&Area<'_>) -> Drawn) -> Result<String> {
    let mut text = String::new();
    let drawn = {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE)
            .map_err(Into::into)
            .and_then(|()| picture(&root))
            .and_then(|()| root.present().map_err(Into::into))
    };
    drawn.map_err(|e| Error::new(ErrorKind::Io, format!("cannot draw a picture: {e}")))?;
    Ok(text)
}

/// The range of some values with room at both ends; never empty.
fn padded(values: impl Iterator<Item = f64>, share: f64) -> Range<f64> {
    let finite = values.filter(|v| v.is_finite());
    let (low, high) = finite.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
    if low > high {
        return 0.0..1.0;
    }
    let room = if low < high { share * (high - low) } else { low.abs().mul_add(0.01, 0.01) };
    low - room..high + room
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Words<'_> = Words { title: "A title", x: "across", y: "upwards" };

    #[test]
    fn pictures_have_their_words_and_marks() {
        let curve =
            Line { name: "BLNN".into(), points: vec![(0.1, 90.0), (0.2, 91.0), (0.3, 90.5)] };
        let level = Line { name: "BGRL".into(), points: vec![(0.1, 90.2), (0.3, 90.2)] };
        let svg = lines(WORDS, &[curve, level]).unwrap();
        for word in ["A title", "across", "upwards", "BLNN", "BGRL"] {
            assert!(svg.contains(word), "{word}");
        }
        assert_eq!(svg.matches("<circle").count(), 3, "a level has no marks");
    }

    #[test]
    fn dots_show_both_numbers_where_there_are_two() {
        let both =
            Dot { name: "BGRL".into(), ours: Some((90.25, Some(0.1))), published: Some(90.34) };
        let ours = Dot { name: "mine".into(), ours: Some((89.0, None)), published: None };
        let svg = dots(WORDS, &[both, ours]).unwrap();
        for word in ["90.25", "90.34", "89.00", "mine", "published", "ours"] {
            assert!(svg.contains(word), "{word}");
        }
        assert!(dots(WORDS, &[]).is_ok(), "nothing to show is no error");
    }

    #[test]
    fn long_names_take_several_lines() {
        assert_eq!(wrapped("BGRL, noisy", 12), ["BGRL, noisy"]);
        assert_eq!(wrapped("BLNN (published code)", 12), ["BLNN", "(published", "code)"]);
        assert_eq!(wrapped("", 12), [""; 0]);
    }

    #[test]
    fn maps_name_their_classes() {
        let points = Matrix::from_fn(20, 2, |i, j| (i * (j + 1)) as f32);
        let labels: Vec<u32> = (0..20).map(|i| i % 10).collect();
        let svg = map("A map", &points, &labels, &["first".into()]).unwrap();
        assert!(svg.contains("first") && svg.contains("class 9"));
        assert_eq!(svg.matches("<circle").count(), 8 * 2 + 8, "two points and a key each");
    }

    #[test]
    fn ticks_have_no_needless_zeros() {
        assert_eq!([2.0, 0.5, 90.25, 0.0].map(|v| tick(&v)), ["2", "0.5", "90.25", "0"]);
    }

    #[test]
    fn ranges_are_never_empty() {
        assert_eq!(padded([].into_iter(), 0.1), 0.0..1.0);
        let one = padded([5.0].into_iter(), 0.1);
        assert!(one.start < 5.0 && one.end > 5.0);
        assert!(padded([0.0].into_iter(), 0.1).end > 0.0);
    }
}
