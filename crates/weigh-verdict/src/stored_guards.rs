//! Withdraws verdicts that the other readings of a stored row's pairs do not support, as is done
//! during measurement (`row.rs`).

use super::interleaved::{self, Claims};
use super::late;
use super::pairs::Measurements;
use paired::design::Design;
use paired::judge::Judgement;
use weigh_model::record::{Header, Stored};
use weigh_model::result::scheme::Scheme;
use weigh_model::workload::metric::Metric;

/// Withdraws verdicts that a row's other readings do not support; `judged` holds the rates of all rows, then
/// each further metric of all rows.
pub fn guard(
    judged: &mut [Judgement],
    measurements: &[Measurements],
    further: &[Metric],
    design: &Design,
) {
    let rows = measurements.len();
    let (rates, others) = judged.split_at_mut(rows);
    for (number, (rate, of_row)) in rates.iter_mut().zip(measurements).enumerate() {
        let claims = claims_of(number, measurements, others, further);

        interleaved::guard(rate, of_row.schedule.main(), &claims, design);
        let mut late = of_row.late.clone();
        late.beside(&of_row.log_ratios(), design.margin);
        late::guard(rate, &late);
        // What begins late is in no other claim of these pairs either.
        let because = rate.withheld.map(|withheld| withheld.because);
        let because = because.or_else(|| late.doubt(rate.estimate));
        for (which, _) in further.iter().enumerate().filter(|(_, metric)| metric.is_implicit()) {
            interleaved::guard_beside(&mut others[which * rows + number], because);
        }
    }
}

/// Returns the other readings of a row's pairs; `others` holds each further metric of all rows.
pub fn claims_of<'a>(
    row: usize,
    measurements: &'a [Measurements],
    others: &'a [Judgement],
    further: &[Metric],
) -> Claims<'a> {
    let of = |metric: &Metric| {
        let which = further.iter().position(|one| one == metric)?;
        others.get(which * measurements.len() + row)
    };
    Claims {
        pairs: measurements[row].series.len(),
        outside: &measurements[row].outside,
        cpu_time: of(&Metric::CpuTime),
        all_time: of(&Metric::OverallRate),
    }
}

/// How the pairs of a row were taken, where there was a choice.
pub fn scheme_of(stored: &Stored, row: &Measurements) -> Option<Scheme> {
    let Header { metrics, pilot_chooses_scheme, .. } = &stored.header;
    let has_choice = *pilot_chooses_scheme || metrics.contains(&Metric::OverallRate);
    has_choice.then_some(row.schedule.main())
}
