//! The metadata of the root of several levels: a group with OME-NGFF 0.5 multiscales.

use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::{MetadataError, check_node, parse_json};
use crate::layout::{Layout, OME};
use crate::limits::LEVELS_MAX;
use crate::spec::{Axis, AxisKind};

/// The version of OME-NGFF that is written.
const OME_VERSION: &str = "0.5";

/// The metadata of a group.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GroupMetadata {
    /// The levels, if it is a multiscale image.
    pub multiscale: Option<Multiscale>,
    /// What the user keeps with it.
    pub attributes: Map<String, Value>,
}

/// The levels of an image: what their dimensions are and where each lies.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Multiscale {
    /// What the dimensions are, with the scales of level 0.
    pub axes: Vec<Axis>,
    /// The levels, the full resolution first.
    pub datasets: Vec<Dataset>,
    /// How each level was made from the one before it.
    pub reduction: Option<String>,
}

/// One level of an image.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Dataset {
    /// Where it lies below the group.
    pub path: String,
    /// How far apart elements are along each dimension.
    pub scale: Vec<f64>,
    /// Where the first element lies along each dimension.
    pub translation: Vec<f64>,
}

impl GroupMetadata {
    /// The metadata of a layout's root; none if its root is an array.
    pub fn of_layout(layout: &Layout) -> Option<Self> {
        let axes = layout.axes()?;
        let datasets = layout.levels().iter().map(|level| {
            let scales = axes.iter().zip(&level.factor);
            Dataset {
                path: level.path.clone(),
                scale: scales.clone().map(|(axis, factor)| axis.scale * *factor as f64).collect(),
                // Elements are placed by their middle, and the middle of a window is not that of its first element.
                translation: scales.map(|(axis, factor)| axis.scale * (*factor as f64 - 1.0) / 2.0).collect(),
            }
        });
        let multiscale = Multiscale {
            axes: axes.to_vec(),
            datasets: datasets.collect(),
            reduction: (layout.levels().len() > 1).then(|| layout.reduction().name().to_owned()),
        };
        Some(Self { multiscale: Some(multiscale), attributes: layout.attributes().clone() })
    }

    /// The file's text.
    pub fn to_json(&self) -> Vec<u8> {
        let mut attributes = self.attributes.clone();
        if let Some(multiscale) = &self.multiscale {
            let ome = json!({ "version": OME_VERSION, "multiscales": [multiscale.to_json()] });
            attributes.insert(OME.to_owned(), ome);
        }
        super::pretty(&json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes }))
    }

    /// Reads a file's text.
    pub fn parse(text: &[u8]) -> Result<Self, MetadataError> {
        let json = parse_json(text)?;
        let fields = Fields::of(&json, "")?;
        check_node(fields, "group")?;
        let mut attributes = fields.attributes()?;
        let multiscale = attributes.remove(OME).map(|ome| Multiscale::parse(&ome)).transpose()?;
        Ok(Self { multiscale, attributes })
    }
}

impl Multiscale {
    fn to_json(&self) -> Value {
        let mut json = json!({
            "name": "",
            "axes": self.axes.iter().map(axis_to_json).collect::<Vec<_>>(),
            "datasets": self.datasets.iter().map(Dataset::to_json).collect::<Vec<_>>(),
        });
        if let Some(reduction) = &self.reduction {
            json["type"] = json!(reduction);
        }
        json
    }

    fn parse(ome: &Value) -> Result<Self, MetadataError> {
        let ome = Fields::of(ome, "attributes.ome")?;
        let place = "attributes.ome.multiscales";
        let [first, ..] = ome.list("multiscales")? else { return Err(MetadataError::field(place, "is empty")) };
        let fields = Fields::of(first, place)?;
        let datasets: Vec<Dataset> = fields.list("datasets")?.iter().map(Dataset::parse).collect::<Result<_, _>>()?;
        if datasets.is_empty() || datasets.len() > LEVELS_MAX as usize {
            return Err(MetadataError::field(
                fields.name("datasets"),
                format!("does not list 1 to {LEVELS_MAX} levels"),
            ));
        }
        let axes = fields.list("axes")?.iter();
        let axes: Vec<Axis> = axes
            .enumerate()
            .map(|(at, axis)| axis_from_json(axis, datasets[0].scale.get(at)))
            .collect::<Result<_, _>>()?;
        if datasets.iter().any(|dataset| dataset.scale.len() != axes.len()) {
            return Err(MetadataError::field(fields.name("datasets"), "has scales for another number of axes"));
        }
        let reduction = fields.optional("type").and_then(Value::as_str).map(str::to_owned);
        Ok(Self { axes, datasets, reduction })
    }
}

impl Dataset {
    fn to_json(&self) -> Value {
        let mut transformations = vec![json!({ "type": "scale", "scale": self.scale })];
        if self.translation.iter().any(|along| *along != 0.0) {
            transformations.push(json!({ "type": "translation", "translation": self.translation }));
        }
        json!({ "path": self.path, "coordinateTransformations": transformations })
    }

    fn parse(dataset: &Value) -> Result<Self, MetadataError> {
        let fields = Fields::of(dataset, "attributes.ome.multiscales.datasets")?;
        let transformations = fields.list("coordinateTransformations")?;
        let place = "attributes.ome.multiscales.datasets.coordinateTransformations";
        let of_kind = |kind: &str| -> Result<Option<Vec<f64>>, MetadataError> {
            let of_kind = transformations.iter().find(|one| one.get("type").and_then(Value::as_str) == Some(kind));
            of_kind.map(|one| Fields::of(one, place)?.floats(kind)).transpose()
        };
        let scale = of_kind("scale")?.ok_or_else(|| MetadataError::field(place, "has no scale"))?;
        let translation = of_kind("translation")?.unwrap_or_else(|| vec![0.0; scale.len()]);
        if translation.len() != scale.len() {
            return Err(MetadataError::field(place, "has a scale and a translation of different lengths"));
        }
        Ok(Self { path: fields.text("path")?.to_owned(), scale, translation })
    }
}

fn axis_to_json(axis: &Axis) -> Value {
    let mut json = json!({ "name": axis.name, "type": axis.kind.name() });
    if let Some(unit) = &axis.unit {
        json["unit"] = json!(unit);
    }
    json
}

fn axis_from_json(axis: &Value, scale: Option<&f64>) -> Result<Axis, MetadataError> {
    let fields = Fields::of(axis, "attributes.ome.multiscales.axes")?;
    let kind = fields.optional("type").and_then(Value::as_str);
    Ok(Axis {
        name: fields.text("name")?.to_owned(),
        // Others have kinds of their own, which like channels are never halved.
        kind: kind.and_then(AxisKind::named).unwrap_or(AxisKind::Channel),
        unit: fields.optional("unit").and_then(Value::as_str).map(str::to_owned),
        scale: scale.copied().unwrap_or(1.0),
    })
}
