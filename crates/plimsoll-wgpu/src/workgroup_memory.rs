//! How much workgroup memory a kernel takes, compared with what the device has. wgpu does not compare it (30.0), and what a
//! driver does with a kernel that takes more is undefined: some compile it, and it answers wrongly.
//! Never judges a text that is wrong in another way: wgpu says what is wrong with it when it compiles it.

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::Kernel;
use wgpu::naga::proc::Layouter;
use wgpu::naga::valid::{Capabilities, ValidationFlags, Validator};
use wgpu::naga::{AddressSpace, front::wgsl};

/// [`Fault::Unsupported`] if the kernel takes more than `limit` bytes of workgroup memory.
pub(crate) fn check(kernel: &Kernel, limit: u32) -> Result<(), Fault> {
    match used(kernel.wgsl, kernel.entry) {
        Some(used) if used > u64::from(limit) => {
            let (used, limit) = (Bytes(used), Bytes(u64::from(limit)));
            let detail = format!("kernel '{}' takes {used} of workgroup memory, there are {limit}", kernel.name);
            Err(Fault::Unsupported { detail })
        }
        _ => Ok(()),
    }
}

/// Bytes that the entry point and what it calls hold in workgroup memory; none if the text is no valid module with such an
/// entry point.
fn used(text: &str, entry: &str) -> Option<u64> {
    let module = wgsl::parse_str(text).ok()?;
    let point = module.entry_points.iter().position(|point| point.name == entry)?;
    let info = Validator::new(ValidationFlags::all(), Capabilities::all()).validate(&module).ok()?;
    let uses = info.get_entry_point(point);
    let mut layouts = Layouter::default();
    layouts.update(module.to_ctx()).ok()?;
    let workgroup = module.global_variables.iter().filter(|(_, variable)| variable.space == AddressSpace::WorkGroup);
    let taken = workgroup.filter(|(variable, _)| !uses[*variable].is_empty()).fold(0_u64, |end, (_, variable)| {
        let layout = layouts[variable.ty];
        u64::from(layout.alignment.round_up(end.min(u64::from(u32::MAX)) as u32)) + u64::from(layout.size)
    });
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_KERNELS: &str = "
        var<workgroup> byte: u32;
        var<workgroup> vectors: array<vec3<f32>, 10>;
        var<workgroup> large: array<u32, 1000000>;
        fn helper() { byte = 1u; }
        @compute @workgroup_size(1) fn small() { helper(); vectors[0] = vec3f(1.0); }
        @compute @workgroup_size(1) fn greedy() { large[0] = 1u; }
        @compute @workgroup_size(1) fn modest() {}";

    #[test]
    fn what_an_entry_point_uses_counts_with_its_alignment_and_nothing_else() {
        assert_eq!(used(TWO_KERNELS, "small"), Some(16 + 10 * 16), "used by a function that it calls, too");
        assert_eq!(used(TWO_KERNELS, "greedy"), Some(4_000_000));
        assert_eq!(used(TWO_KERNELS, "modest"), Some(0));
        assert_eq!(used(TWO_KERNELS, "another"), None);
        assert_eq!(used("this is no shader", "main"), None);
    }

    #[test]
    fn exactly_what_there_is_may_be_taken() {
        let kernel =
            Kernel { name: "greedy", wgsl: TWO_KERNELS, entry: "greedy", bindings: &[], params: 0, twin: |_| () };
        check(&kernel, 4_000_000).unwrap();
        assert!(matches!(check(&kernel, 3_999_999), Err(Fault::Unsupported { .. })));
    }
}
