//! Which processor this is: a name for people, and a key for the profile.
//! Never measures speed. Invariant: equal processors give equal keys; another model, feature set or core count does not.

use std::fs;

use twox_hash::XxHash3_64;

use super::kernel_text;

/// What tells one processor model from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CpuIdentity {
    brand: String,
    features: String,
}

impl CpuIdentity {
    pub(super) fn of_this_machine() -> Self {
        let of_first = || Self::of_first_processor(&kernel_text::first("/proc/cpuinfo")?);
        let of_all = || Self::parse(&fs::read_to_string("/proc/cpuinfo").ok()?);
        of_first()
            .or_else(of_all)
            .unwrap_or_else(|| Self { brand: format!("{} processor", std::env::consts::ARCH), features: String::new() })
    }

    /// Reads the beginning of the file, if it tells all of a processor on x86: the kernel takes its time for each of them,
    /// and a machine may have hundreds.
    fn of_first_processor(text: &str) -> Option<Self> {
        let (first, _) = text.split_once("\n\n")?;
        (first.contains("model name") && first.contains("flags")).then(|| Self::parse(first))?
    }

    /// Reads the first processor of `/proc/cpuinfo`. Lines have other names on x86 and ARM.
    fn parse(cpuinfo: &str) -> Option<Self> {
        let field = |names: &[&str]| {
            cpuinfo
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| names.contains(&name.trim()))
                .map(|(_, value)| value.trim().to_owned())
        };
        let brand = field(&["model name", "Model", "Hardware"]).or_else(|| {
            let part = field(&["CPU part"])?;
            Some(format!("{} part {part}", field(&["CPU implementer"]).unwrap_or_default()))
        })?;
        // The kernel lists features in no promised order.
        let listed = field(&["flags", "Features"]).unwrap_or_default();
        let mut features: Vec<&str> = listed.split_whitespace().collect();
        features.sort_unstable();
        Some(Self { brand, features: features.join(" ") })
    }

    pub(super) fn name(&self) -> &str {
        &self.brand
    }

    pub(super) fn key(&self, cores: usize) -> String {
        format!("cpu-{:016x}", XxHash3_64::oneshot(format!("{}\n{}\n{cores}", self.brand, self.features).as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_processor_is_enough_where_it_says_all() {
        assert_eq!(CpuIdentity::of_first_processor(X86), CpuIdentity::parse(X86));
        assert_eq!(CpuIdentity::of_first_processor(ARM), None, "its name may stand at the end");
        assert_eq!(CpuIdentity::of_first_processor("model name: a\nflags: b"), None, "cut off");
    }

    const X86: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 207\nmodel name\t: Intel(R) Xeon(R) Processor\n\
                       flags\t\t: fpu vme avx2\nbugs\t\t: its\n\nprocessor\t: 1\nmodel name\t: other\n";
    const ARM: &str = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";

    #[test]
    fn x86_and_arm_name_themselves_differently() {
        assert_eq!(CpuIdentity::parse(X86).unwrap().name(), "Intel(R) Xeon(R) Processor");
        assert_eq!(CpuIdentity::parse(ARM).unwrap().name(), "0x41 part 0xd0c");
        assert_eq!(CpuIdentity::parse("nonsense"), None);
    }

    #[test]
    fn key_holds_model_features_and_cores() {
        let key = |text: &str, cores| CpuIdentity::parse(text).unwrap().key(cores);
        assert_eq!(key(X86, 2), key(&X86.replace("fpu vme avx2", "avx2 fpu vme"), 2));
        assert_ne!(key(X86, 2), key(X86, 4));
        assert_ne!(key(X86, 2), key(&X86.replace("avx2", "avx512f"), 2));
        assert_ne!(key(X86, 2), key(ARM, 2));
    }
}
