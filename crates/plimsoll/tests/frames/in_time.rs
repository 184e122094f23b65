//! Chains that look at other frames, over several devices.
