//! Each metric beside values from outside: the published crate, the paper's tool, a published table.

mod butteraugli;
mod cvvdp;
mod drawn;
mod dssim;
mod iwssim;
mod ms_ssim;
mod psnr;
mod ssim;
mod ssim2;
mod zensim;
