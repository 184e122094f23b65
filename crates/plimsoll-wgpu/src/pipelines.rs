//! Kernels compiled for one device, each once.
//! Never outlives its device: pipelines belong to the wgpu device that made them.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Kernel};
use wgpu::{BindGroupLayoutEntry, BindingType, BufferBindingType, ShaderStages};

use crate::generation::Generation;
use crate::workgroup_memory;

/// A kernel ready to run.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) compute: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
}

/// The kernels of one device. A kernel is a static, so its address is its name; it is bounded by the program's text.
#[derive(Debug, Default)]
pub(crate) struct Pipelines(Mutex<HashMap<usize, Arc<Pipeline>>>);

impl Pipelines {
    /// The kernel's pipeline, compiled on first use. Others wait meanwhile: they would compile the same.
    pub(crate) fn of(&self, generation: &Generation, kernel: &'static Kernel) -> Result<Arc<Pipeline>, Fault> {
        let mut ready = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = std::ptr::from_ref(kernel).addr();
        if let Some(pipeline) = ready.get(&name) {
            return Ok(Arc::clone(pipeline));
        }
        let pipeline = Arc::new(compile(generation, kernel)?);
        ready.insert(name, Arc::clone(&pipeline));
        Ok(pipeline)
    }
}

/// A kernel that this device cannot run, for whatever reason, is [`Fault::Unsupported`]: its CPU twin can.
fn compile(generation: &Generation, kernel: &'static Kernel) -> Result<Pipeline, Fault> {
    let device = &generation.device;
    workgroup_memory::check(kernel, device.limits().max_compute_workgroup_storage_size)?;
    generation.compile(kernel.name, || {
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(kernel.name),
            source: wgpu::ShaderSource::Wgsl(kernel.wgsl.into()),
        });
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some(kernel.name),
            entries: &bindings(kernel),
        });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(kernel.name),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let compute = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(kernel.name),
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some(kernel.entry),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        Pipeline { compute, layout }
    })
}

fn bindings(kernel: &Kernel) -> Vec<BindGroupLayoutEntry> {
    let storage = kernel.bindings.iter().map(|access| BindingType::Buffer {
        ty: BufferBindingType::Storage { read_only: *access == Access::Read },
        has_dynamic_offset: false,
        min_binding_size: None,
    });
    let params = NonZeroU64::new(kernel.params as u64).map(|bytes| BindingType::Buffer {
        ty: BufferBindingType::Uniform,
        has_dynamic_offset: false,
        min_binding_size: Some(bytes),
    });
    let entry = |(binding, ty)| BindGroupLayoutEntry { binding, visibility: ShaderStages::COMPUTE, ty, count: None };
    (0..).zip(storage.chain(params)).map(entry).collect()
}
