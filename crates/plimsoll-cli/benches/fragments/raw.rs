//! A GPU as its driver gives it: what moving bytes there costs with nothing of ours around it.

use wgpu::{BufferDescriptor, BufferUsages, DeviceDescriptor, Instance, PollType, RequestAdapterOptions};

/// A device without a scheduler.
pub(crate) struct RawGpu(wgpu::Device);

impl RawGpu {
    pub(crate) fn open() -> Self {
        let adapter = pollster::block_on(Instance::default().request_adapter(&RequestAdapterOptions::default()));
        let adapter = adapter.expect("there is a GPU");
        let (required_features, required_limits) = (wgpu::Features::MAPPABLE_PRIMARY_BUFFERS, adapter.limits());
        let descriptor = DeviceDescriptor { required_features, required_limits, ..DeviceDescriptor::default() };
        Self(pollster::block_on(adapter.request_device(&descriptor)).expect("it opens").0)
    }

    /// Each of these into a new buffer, written where it lies; then all of them go.
    pub(crate) fn write_anew(&self, parts: &[Vec<u8>]) {
        let buffers: Vec<wgpu::Buffer> = parts.iter().map(|part| self.write(part)).collect();
        drop(buffers);
        self.0.poll(PollType::wait_indefinitely()).expect("it answers");
    }

    fn write(&self, part: &[u8]) -> wgpu::Buffer {
        let usage = BufferUsages::STORAGE | BufferUsages::MAP_WRITE;
        let size = (part.len() as u64).next_multiple_of(4);
        let buffer = self.0.create_buffer(&BufferDescriptor { label: None, size, usage, mapped_at_creation: true });
        let mut view = buffer.get_mapped_range_mut(..).expect("it is mapped");
        view.slice(..part.len()).copy_from_slice(part);
        drop(view);
        buffer.unmap();
        buffer
    }
}
