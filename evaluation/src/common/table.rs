//! A table of text: first column to the left, numbers to the right.

pub struct Table(Vec<Vec<String>>);

impl Table {
    pub fn new(titles: &[&str]) -> Self {
        Self(vec![titles.iter().map(|&title| title.to_owned()).collect()])
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.0.push(cells);
    }

    pub fn print(&self) {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| self.0.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0))
            .collect();
        for row in &self.0 {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, &width))| if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") })
                .collect();
            println!("{}", cells.join("  ").trim_end());
        }
    }
}
