//! Programs of a profile as JSON, so that one process can read what another one measured.

use std::fmt::Write as _;
use std::time::Duration;

use super::ProgramTime;
use crate::json::quoted;

impl ProgramTime {
    /// One JSON object; times are nanoseconds, the pipeline is hexadecimal or null. `times_ns` has pairs of a time and
    /// the number of calls that took it ([`CallTimes::iter`](super::CallTimes::iter)).
    ///
    /// ```text
    /// {"name":"scan","pipeline":"0123456789abcdef","calls":3,"workgroups":12,"bytes":64,"busy_ns":900,
    ///  "elapsed_ns":950,"shortest_ns":300,"longest_ns":340,"times_ns":[[300,1],[308,1],[340,1]]}
    /// ```
    pub fn json(&self) -> String {
        let Self { name, pipeline, calls, workgroups, bytes, busy, elapsed, shortest, longest, times } = self;
        let pipeline = pipeline.map_or("null".to_owned(), |pipeline| format!("\"{pipeline:016x}\""));
        let mut text = format!("{{\"name\":{},\"pipeline\":{pipeline}", quoted(name));
        for (key, value) in [("calls", calls), ("workgroups", workgroups), ("bytes", bytes)] {
            // Writing to a string cannot fail.
            let _ = write!(text, ",\"{key}\":{value}");
        }
        let nanos = |time: &Duration| time.as_nanos();
        for (key, value) in [("busy", busy), ("elapsed", elapsed), ("shortest", shortest), ("longest", longest)] {
            let _ = write!(text, ",\"{key}_ns\":{}", nanos(value));
        }
        let times: Vec<_> = times.iter().map(|(time, calls)| format!("[{},{calls}]", nanos(&time))).collect();
        let _ = write!(text, ",\"times_ns\":[{}]}}", times.join(","));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::CallTimes;
    use super::*;

    #[test]
    fn programs_are_objects() {
        let nanos = Duration::from_nanos;
        let mut times = CallTimes::default();
        [9, 11].into_iter().for_each(|time| times.add(nanos(time), 1));
        let program = ProgramTime {
            name: "a \"b\"".to_owned(),
            pipeline: Some(0xab),
            calls: 2,
            workgroups: 8,
            bytes: 64,
            busy: nanos(30),
            elapsed: nanos(20),
            shortest: nanos(9),
            longest: nanos(11),
            times,
        };
        let text = "{\"name\":\"a \\\"b\\\"\",\"pipeline\":\"00000000000000ab\",\"calls\":2,\
                    \"workgroups\":8,\"bytes\":64,\
                    \"busy_ns\":30,\"elapsed_ns\":20,\"shortest_ns\":9,\"longest_ns\":11,\"times_ns\":[[9,1],[11,1]]}";
        assert_eq!(program.json(), text);
        assert!(ProgramTime { pipeline: None, ..program }.json().contains("\"pipeline\":null"));
    }
}
