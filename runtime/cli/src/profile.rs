//! Tables of the time that each program took, from a profile of the driver or from a timeline.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value as Json, json};
use spelter::{CallTimes, ProgramTime};

use crate::columns::{count, digits, percent, seconds};

/// The time of one program: a pipeline, or a kind of transfer. Times are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ProgramRow {
    pub(crate) name: String,
    /// Identifies the pipeline; `None` for transfers.
    pub(crate) pipeline: Option<String>,
    pub(crate) calls: u64,
    pub(crate) workgroups: u64,
    pub(crate) bytes: u64,
    /// From begin to end of each call.
    pub(crate) elapsed: f64,
    /// The time of all workers together.
    pub(crate) busy: f64,
    pub(crate) shortest: f64,
    pub(crate) longest: f64,
    pub(crate) times: CallTimes,
    /// The most float operations of all calls together, if they are known.
    pub(crate) flops: Option<f64>,
}

impl From<&ProgramTime> for ProgramRow {
    fn from(program: &ProgramTime) -> Self {
        let nanos = |time: Duration| time.as_nanos() as f64;
        Self {
            name: program.name.clone(),
            pipeline: program.pipeline.map(|pipeline| format!("{pipeline:016x}")),
            calls: program.calls,
            workgroups: program.workgroups,
            bytes: program.bytes,
            elapsed: nanos(program.elapsed),
            busy: nanos(program.busy),
            shortest: nanos(program.shortest),
            longest: nanos(program.longest),
            times: program.times.clone(),
            flops: None,
        }
    }
}

impl ProgramRow {
    fn add(&mut self, other: &Self) {
        self.flops = if self.calls == 0 { other.flops } else { self.flops.zip(other.flops).map(|(a, b)| a + b) };
        self.shortest = if self.calls == 0 { other.shortest } else { self.shortest.min(other.shortest) };
        self.longest = self.longest.max(other.longest);
        self.calls += other.calls;
        self.workgroups += other.workgroups;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.elapsed += other.elapsed;
        self.busy += other.busy;
        self.times.add_all(&other.times);
    }

    /// The time that this part of the calls did not exceed, in seconds. Buckets of times may end beyond the extremes.
    fn quantile(&self, part: f64) -> f64 {
        (self.times.quantile(part).as_nanos() as f64).clamp(self.shortest, self.longest.max(self.shortest)) / 1e9
    }

    /// A rate during the calls; `None` if they took no time.
    fn per_second(&self, amount: f64) -> Option<f64> {
        (self.elapsed > 0.0).then(|| amount / (self.elapsed / 1e9))
    }

    /// A program of a profile that the driver wrote.
    fn of_driver(program: &Json) -> Option<Self> {
        let number = |name: &str| program[name].as_u64();
        Some(Self {
            name: program["name"].as_str()?.to_owned(),
            pipeline: program["pipeline"].as_str().map(str::to_owned),
            calls: number("calls")?,
            workgroups: number("workgroups")?,
            bytes: number("bytes")?,
            elapsed: number("elapsed_ns")? as f64,
            busy: number("busy_ns")? as f64,
            shortest: number("shortest_ns")? as f64,
            longest: number("longest_ns")? as f64,
            times: times(&program["times_ns"])?,
            flops: None,
        })
    }
}

/// Pairs of nanoseconds and a number of calls.
fn times(pairs: &Json) -> Option<CallTimes> {
    let mut times = CallTimes::default();
    for pair in pairs.as_array()? {
        let [time, calls] = &pair.as_array()?[..] else { return None };
        times.add(Duration::from_nanos(time.as_u64()?), calls.as_u64()?);
    }
    Some(times)
}

/// The programs of several processes, contexts or files: equal ones are added up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Programs(BTreeMap<(Option<String>, String), ProgramRow>);

impl Programs {
    pub(crate) fn add(&mut self, row: &ProgramRow) {
        let ProgramRow { name, pipeline, .. } = row;
        let empty = || ProgramRow { name: name.clone(), pipeline: pipeline.clone(), ..ProgramRow::default() };
        self.0.entry((pipeline.clone(), name.clone())).or_insert_with(empty).add(row);
    }

    /// Adds a profile that the driver wrote; an error for another text.
    pub(crate) fn add_driver(&mut self, text: &str) -> Result<(), String> {
        let profile: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let programs = profile["programs"].as_array().ok_or("`programs` is not a list")?;
        for program in programs {
            let row = ProgramRow::of_driver(program).ok_or_else(|| format!("not the time of a program: {program}"))?;
            self.add(&row);
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The busiest first.
    fn sorted(&self) -> Vec<&ProgramRow> {
        let mut rows: Vec<_> = self.0.values().collect();
        rows.sort_by(|a, b| b.busy.total_cmp(&a.busy).then_with(|| a.name.cmp(&b.name)));
        rows
    }

    fn busy(&self) -> f64 {
        self.0.values().map(|row| row.busy).sum::<f64>().max(1.0)
    }

    pub(crate) fn json(&self) -> Json {
        let all = self.busy();
        let row = |row: &&ProgramRow| {
            let ProgramRow { name, pipeline, calls, workgroups, bytes, elapsed, busy, shortest, longest, .. } = row;
            json!({
                "name": name, "pipeline": pipeline, "calls": calls, "workgroups": workgroups, "bytes": bytes,
                "total_seconds": elapsed / 1e9,
                "mean_seconds": elapsed / 1e9 / (*calls).max(1) as f64,
                "shortest_seconds": shortest / 1e9,
                "p50_seconds": row.quantile(0.5),
                "p99_seconds": row.quantile(0.99),
                "longest_seconds": longest / 1e9,
                "busy_seconds": busy / 1e9,
                "share": busy / all,
                "workgroups_per_second": row.per_second(*workgroups as f64),
                "bytes_per_second": row.per_second(*bytes as f64),
                "flops_per_second": row.flops.and_then(|flops| row.per_second(flops)),
            })
        };
        self.sorted().iter().map(row).collect()
    }

    /// The head and the rows of a table. Float operations have a column if those of any program are known.
    pub(crate) fn table(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let (rows, all) = (self.sorted(), self.busy());
        let ambiguous = |row: &ProgramRow| rows.iter().filter(|other| other.name == row.name).count() > 1;
        let name = |row: &ProgramRow| match &row.pipeline {
            // The first digits tell pipelines with the same entry point apart.
            Some(pipeline) if ambiguous(row) => format!("{} {}", row.name, pipeline.get(..6).unwrap_or(pipeline)),
            _ => row.name.clone(),
        };
        let has_flops = rows.iter().any(|row| row.flops.is_some());
        let rate = |rate: Option<f64>, show: fn(f64) -> String| rate.map_or("-".to_owned(), show);
        let giga = |amount: f64| digits(amount / 1e9);
        let cells = |row: &&ProgramRow| {
            let mut cells = vec![
                name(row),
                row.calls.to_string(),
                seconds(row.elapsed / 1e9),
                seconds(row.elapsed / 1e9 / row.calls.max(1) as f64),
                seconds(row.quantile(0.5)),
                seconds(row.quantile(0.99)),
                seconds(row.busy / 1e9),
                percent(row.busy / all),
                row.workgroups.to_string(),
                rate(row.per_second(row.workgroups as f64), count),
                rate(row.per_second(row.bytes as f64), giga),
            ];
            cells.extend(has_flops.then(|| rate(row.flops.and_then(|flops| row.per_second(flops)), giga)));
            cells
        };
        let head =
            ["program", "calls", "total", "mean", "p50", "p99", "busy", "share", "workgroups", "workgroups/s", "GB/s"];
        (head.into_iter().chain(has_flops.then_some("GFLOP/s")).collect(), rows.iter().map(cells).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"programs":[
        {"name":"main","pipeline":"ab","calls":2,"workgroups":8,"bytes":64,
         "busy_ns":30,"elapsed_ns":20,"shortest_ns":9,"longest_ns":11,"times_ns":[[9,1],[11,1]]},
        {"name":"copy","pipeline":null,"calls":1,"workgroups":1,"bytes":4,
         "busy_ns":10,"elapsed_ns":10,"shortest_ns":10,"longest_ns":10,"times_ns":[[10,1]]}
    ]}"#;

    #[test]
    fn profiles_of_processes_add_up() {
        let mut programs = Programs::default();
        programs.add_driver(TEXT).unwrap();
        programs.add_driver(&TEXT.replace("\"shortest_ns\":9", "\"shortest_ns\":8")).unwrap();
        let json = programs.json();
        let main = &json[0];
        assert_eq!((&main["name"], &main["calls"], &main["workgroups"]), (&"main".into(), &4.into(), &16.into()));
        assert_eq!((&main["share"], &main["mean_seconds"]), (&0.75.into(), &1e-8.into()));
        assert_eq!(main["shortest_seconds"], 8e-9);
        assert_eq!((&main["p50_seconds"], &main["p99_seconds"]), (&9e-9.into(), &1.1e-8.into()));
        assert_eq!((&main["bytes_per_second"], &main["flops_per_second"]), (&3.2e9.into(), &Json::Null));
        assert_eq!(json[1]["pipeline"], Json::Null);
    }

    #[test]
    fn float_operations_have_a_column_if_they_are_known() {
        let mut programs = Programs::default();
        programs.add_driver(TEXT).unwrap();
        assert_eq!(programs.table().0.last(), Some(&"GB/s"));
        let one = ProgramRow { name: "fma".to_owned(), calls: 1, elapsed: 2.0, flops: Some(6.0), ..Default::default() };
        programs.add(&one);
        programs.add(&one);
        let (head, rows) = programs.table();
        let cells: Vec<_> = rows.iter().map(|row| (&*row[0], &*row[head.len() - 1])).collect();
        assert_eq!(cells, [("main", "-"), ("copy", "-"), ("fma", "3.00")]);
    }

    #[test]
    fn other_texts_are_refused() {
        let bad_pair = TEXT.replace("[10,1]", "[10]");
        for text in ["", "[]", "{\"programs\":[{}]}", "{\"programs\":[{\"name\":\"a\",\"calls\":-1}]}", &bad_pair] {
            assert!(Programs::default().add_driver(text).is_err(), "{text}");
        }
    }
}
