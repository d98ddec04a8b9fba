//! An interval drawn in characters: `├──●──┤` with the zero line and the margin behind it.

use super::scale::{EffectScale, Span};

/// Draws intervals into a fixed number of cells, all on one scale.
#[derive(Clone, Copy, Debug)]
pub struct Bars {
    pub scale: EffectScale,
    pub margin_pct: f64,
    pub cells: usize,
}

impl Bars {
    /// One row's interval; an arrow stands for an end that is off the scale or has no bound.
    pub fn draw(&self, span: Span, decided: bool) -> String {
        let mut cells = self.background();
        let Some(last) = self.cells.checked_sub(1) else {
            return String::new();
        };
        if span.effect_pct.is_nan() {
            return cells.into_iter().collect();
        }
        let low = span.low_pct.filter(|pct| !pct.is_nan()).map(|pct| self.cell(pct));
        let high = span.high_pct.filter(|pct| !pct.is_nan()).map(|pct| self.cell(pct));
        let inside = |cell: isize| (0..=last as isize).contains(&cell);
        let from = low.unwrap_or(-1).clamp(0, last as isize) as usize;
        let to = high.unwrap_or(isize::MAX).clamp(0, last as isize) as usize;
        for cell in &mut cells[from..=to.max(from)] {
            *cell = if *cell == '│' { '┼' } else { '─' };
        }
        if from < to {
            cells[from] = if low.is_some_and(inside) { '├' } else { '←' };
            cells[to] = if high.is_some_and(inside) { '┤' } else { '→' };
        }
        let estimate = self.cell(span.effect_pct);
        if inside(estimate) {
            cells[estimate as usize] = if decided { '●' } else { '○' };
        }
        cells.into_iter().collect()
    }

    /// The labels of the axis, to stand above the bars.
    pub fn axis(&self) -> String {
        let mut cells = vec![' '; self.cells];
        for (at, text) in self.scale.labels() {
            let length = text.chars().count();
            let start = (at * self.cells as f64 - (length / 2) as f64).floor().max(0.0) as usize;
            let start = start.min(self.cells.saturating_sub(length));
            let around = start.saturating_sub(1)..(start + length + 1).min(self.cells);
            // A blank on either side, or two labels read as one.
            if length > self.cells || cells[around].iter().any(|cell| *cell != ' ') {
                continue;
            }
            for (cell, character) in cells[start..].iter_mut().zip(text.chars()) {
                *cell = character;
            }
        }
        cells.into_iter().collect()
    }

    fn background(&self) -> Vec<char> {
        let mut cells = vec![' '; self.cells];
        let lines = [(-self.margin_pct, '┊'), (self.margin_pct, '┊'), (0.0, '│')];
        for (pct, line) in lines {
            let at = self.cell(pct);
            if let Some(cell) = usize::try_from(at).ok().and_then(|at| cells.get_mut(at)) {
                *cell = line;
            }
        }
        cells
    }

    /// The cell of an effect; less than 0 or more than the last one when it is off the scale.
    fn cell(&self, pct: f64) -> isize {
        (self.scale.at(pct) * self.cells as f64).floor() as isize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(effect_pct: f64, low_pct: Option<f64>, high_pct: Option<f64>) -> Span {
        Span { effect_pct, low_pct, high_pct }
    }

    fn bars(cells: usize) -> Bars {
        let scale = EffectScale::of([span(-85.0, Some(-86.0), Some(-84.0))], 1.0);
        Bars { scale, margin_pct: 1.0, cells }
    }

    #[test]
    fn an_interval_has_two_ends_and_an_estimate() {
        let bar = bars(40).draw(span(-20.0, Some(-50.0), Some(-5.0)), true);
        assert_eq!(bar.chars().count(), 40);
        let marks: String = bar.chars().filter(|c| !" ─".contains(*c)).collect();
        assert_eq!(marks, "├●┤┊│┊");
    }

    #[test]
    fn unbounded_ends_are_arrows() {
        let bar = bars(30).draw(span(0.0, None, None), false);
        assert!(bar.starts_with('←') && bar.ends_with('→') && bar.contains('○'), "{bar}");
        let bar = bars(30).draw(span(-50.0, Some(-90.0), Some(5000.0)), false);
        assert!(bar.ends_with('→') && bar.contains('┼'), "{bar}");
    }

    #[test]
    fn anything_can_be_drawn_in_any_width() {
        let odd = [f64::NAN, f64::INFINITY, -100.0, -99.9, 400.0, 0.0];
        for cells in [0, 1, 2, 7, 40] {
            for (effect, end) in odd.into_iter().flat_map(|a| odd.map(|b| (a, b))) {
                for ends in [(Some(end), Some(-end)), (None, Some(end)), (Some(end), None)] {
                    let bar = bars(cells).draw(span(effect, ends.0, ends.1), true);
                    assert_eq!(bar.chars().count(), cells);
                }
            }
            assert_eq!(bars(cells).axis().chars().count(), cells);
        }
    }

    #[test]
    fn labels_of_the_axis_do_not_touch() {
        for low in [-2.0, -17.6, -55.0, -99.6] {
            for cells in 8..60 {
                let scale = EffectScale::of([span(low, Some(1.2 * low), Some(-low / 3.0))], 1.0);
                let axis = Bars { scale, margin_pct: 1.0, cells }.axis();
                for label in axis.split_whitespace() {
                    let is_whole = label == "0" || label.ends_with('%');
                    assert!(is_whole && label.matches('%').count() <= 1, "{cells}: {axis:?}");
                }
            }
        }
    }

    #[test]
    fn the_axis_names_zero() {
        let axis = bars(40).axis();
        assert!(axis.contains('0') && axis.contains("−50%"), "{axis}");
    }
}
