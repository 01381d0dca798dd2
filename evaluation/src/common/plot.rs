//! Grids of line charts as SVG.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::path::Path;

/// Told apart by colour-blind readers too (Okabe and Ito).
const COLOURS: [RGBColor; 10] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
    RGBColor(170, 160, 40),
    RGBColor(130, 130, 130),
    RGBColor(120, 60, 20),
];
const PANEL: (u32, u32) = (380, 270);
const FONT: &str = "sans-serif";
/// Of one name in the legend, which all panels share.
const NAME: (u32, u32) = (170, 20);

#[derive(Debug)]
pub struct Panel {
    pub x: &'static str,
    pub y: &'static str,
    /// What x was, evenly spaced.
    pub ticks: Vec<u32>,
    /// Line by line: its name and a value for each tick.
    pub lines: Vec<(String, Vec<f64>)>,
}

/// Draws rows of panels to a file. Lines of one name have one colour.
pub fn draw(file: &Path, title: &str, rows: &[Vec<Panel>]) -> Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let mut names: Vec<&str> = Vec::new();
    for (name, values) in rows.iter().flatten().flat_map(|panel| &panel.lines) {
        if !values.is_empty() && !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let width = PANEL.0 * columns as u32;
    let in_line = (width / NAME.0).max(1) as usize;
    let legend = NAME.1 * names.len().div_ceil(in_line) as u32;
    let root = SVGBackend::new(file, (width, PANEL.1 * rows.len().max(1) as u32 + 40 + legend)).into_drawing_area();
    let failed = |error: &dyn std::fmt::Display| anyhow!("cannot draw {}: {error}", file.display());
    root.fill(&WHITE).map_err(|error| failed(&error))?;
    let below = root.titled(title, (FONT, 20)).map_err(|error| failed(&error))?;
    let (above, below) = below.split_vertically(legend);
    draw_legend(&names, in_line, &above).map_err(|error| failed(&error))?;
    let areas = below.split_evenly((rows.len().max(1), columns));
    for (row, row_areas) in rows.iter().zip(areas.chunks(columns)) {
        for (panel, area) in row.iter().zip(row_areas) {
            draw_panel(panel, &names, area).map_err(|error| failed(&error))?;
        }
    }
    root.present().map_err(|error| failed(&error))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw_legend(names: &[&str], in_line: usize, area: &Area<'_>) -> Result<(), Box<dyn std::error::Error>> {
    for (number, name) in names.iter().enumerate() {
        let (x, y) = (10 + NAME.0 as usize * (number % in_line), NAME.1 as usize * (number / in_line) + 3);
        let (x, y) = (i32::try_from(x)?, i32::try_from(y)?);
        area.draw(&PathElement::new([(x, y + 7), (x + 20, y + 7)], colour(number).stroke_width(3)))?;
        area.draw(&Text::new((*name).to_owned(), (x + 26, y), (FONT, 13)))?;
    }
    Ok(())
}

fn colour(number: usize) -> RGBColor {
    COLOURS[number % COLOURS.len()]
}

fn draw_panel(panel: &Panel, names: &[&str], area: &Area<'_>) -> Result<(), Box<dyn std::error::Error>> {
    let values = || panel.lines.iter().flat_map(|(_, values)| values);
    if values().count() == 0 {
        return Ok(());
    }
    let (low, high) = values().fold((0.0f64, 0.0f64), |(low, high), value| (low.min(*value), high.max(*value)));
    let height = (high - low).max(1e-3);
    let low = if low < 0.0 { low - 0.05 * height } else { 0.0 };
    let high = high + 0.1 * height;
    let tick = |x: &f64| {
        let at = x.round();
        let value = panel.ticks.get(at.max(0.0) as usize).filter(|_| at >= 0.0 && (x - at).abs() < 1e-6);
        value.map_or(String::new(), u32::to_string)
    };
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(52)
        .build_cartesian_2d(-0.3..panel.ticks.len() as f64 - 0.7, low..high)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.12))
        .x_desc(panel.x)
        .y_desc(panel.y)
        .axis_desc_style((FONT, 13))
        .label_style((FONT, 11))
        .x_labels(panel.ticks.len())
        .y_labels(6)
        .x_label_formatter(&tick)
        .draw()?;
    // The first one is on top, and what lies below others is wider.
    for (depth, (name, values)) in panel.lines.iter().enumerate().rev() {
        let colour = colour(names.iter().position(|known| known == name).unwrap_or(0));
        let line = values.iter().enumerate().map(|(at, value)| (at as f64, *value));
        let width = 2 + depth as u32 / 2;
        chart.draw_series(LineSeries::new(line, colour.stroke_width(width)).point_size(width))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_and_title_is_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plot.svg");
        let ticks = vec![1, 2, 4, 8, 4321];
        let line = |factor: f64| (1..6).map(|x| f64::from(x) * factor).collect();
        let panel = || Panel {
            x: "threads",
            y: "s",
            ticks: ticks.clone(),
            lines: vec![("off".into(), line(1.0)), ("on".into(), line(-0.5))],
        };
        let empty = Panel { x: "locks", y: "%", ticks: vec![], lines: vec![] };
        draw(&file, "two rows", &[vec![panel(), panel()], vec![panel(), empty]]).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        assert!(text.contains("two rows"));
        assert_eq!(text.matches("\n4321\n").count(), 3);
        assert_eq!((text.matches("\noff\n").count(), text.matches("\non\n").count()), (1, 1));
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let panel = Panel { x: "x", y: "y", ticks: vec![1], lines: vec![("off".into(), vec![1.0])] };
        assert!(draw(Path::new("there/is/no/such/plot.svg"), "title", &[vec![panel]]).is_err());
    }
}
