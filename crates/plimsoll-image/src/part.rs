//! A rectangle of an image, pixel by pixel, to be looked at closely.

use crate::image::{Image, Size};

impl Image {
    /// The pixels from a place on, as 8-bit sRGB; as many as there are of a rectangle of this size.
    ///
    /// ```
    /// use plimsoll_image::{Image, Size};
    /// let image = Image::rgb8(Size { width: 3, height: 1 }, [1, 1, 1, 2, 2, 2, 3, 3, 3])?;
    /// let part = image.part(1, 0, Size { width: 9, height: 9 }).unwrap();
    /// assert_eq!(part.to_rgb8(), [2, 2, 2, 3, 3, 3]);
    /// assert!(image.part(3, 0, Size { width: 1, height: 1 }).is_none(), "outside");
    /// # Ok::<(), plimsoll_image::MakeImageError>(())
    /// ```
    pub fn part(&self, left: u32, top: u32, size: Size) -> Option<Self> {
        let whole = self.size();
        let width = size.width.min(whole.width.checked_sub(left)?);
        let height = size.height.min(whole.height.checked_sub(top)?);
        let pixels = (top..top + height).flat_map(|y| {
            let first = y as usize * whole.width as usize + left as usize;
            first..first + width as usize
        });
        let code = |coded: f64| (coded * 255.0).round() as u8;
        let samples = pixels.flat_map(|pixel| [0, 1, 2].map(|channel| code(self.coded_sample(pixel, channel))));
        Self::rgb8(Size { width, height }, samples.collect::<Vec<_>>()).ok()
    }
}
