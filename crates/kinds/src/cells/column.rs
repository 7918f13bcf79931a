//! A column of the table that `kubectl get` shows: its header and the cell that stands below it.

use serde_json::Value;

use super::created;
use super::row::Row;

/// Header and cell of one column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableColumn {
    pub(crate) name: &'static str,
    /// `string`, `integer`, `boolean` or `date`. Kubernetes: many a column says `string` and shows numbers.
    pub(crate) type_name: &'static str,
    pub(crate) format: &'static str,
    /// 0 is always shown, 1 only by `-o wide`.
    pub(crate) priority: i32,
    /// Whether the table has a header for it.
    pub(crate) has_header: bool,
    cell: Cell,
}

/// Where a cell comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell {
    /// The string at a JSON pointer, empty where there is none.
    Text(&'static str),
    /// The string at a JSON pointer, or the other text where there is none.
    TextOr(&'static str, &'static str),
    /// The number at a JSON pointer, or 0.
    Number(&'static str),
    /// The boolean at a JSON pointer, or `false`.
    Flag(&'static str),
    /// How many members the list or map at a JSON pointer has.
    Count(&'static str),
    Computed(fn(&Row<'_>) -> Value),
}

/// The name of the object.
pub(crate) const NAME: TableColumn =
    string("Name", Cell::Computed(|it| it.name().into())).with_format("name");
/// How long ago the object was created.
pub(crate) const AGE: TableColumn = string("Age", Cell::Computed(|it| it.age().into()));
const CREATED_AT: TableColumn = column("date", "Created At", Cell::Computed(|it| created(it.object)));

/// The columns of a kind that says nothing about them.
pub(crate) const NAME_AND_CREATION: &[TableColumn] = &[NAME, CREATED_AT];

pub(crate) const fn string(name: &'static str, cell: Cell) -> TableColumn {
    column("string", name, cell)
}

pub(crate) const fn integer(name: &'static str, cell: Cell) -> TableColumn {
    column("integer", name, cell)
}

pub(crate) const fn boolean(name: &'static str, cell: Cell) -> TableColumn {
    column("boolean", name, cell)
}

const fn column(type_name: &'static str, name: &'static str, cell: Cell) -> TableColumn {
    TableColumn { name, type_name, format: "", priority: 0, has_header: true, cell }
}

impl TableColumn {
    pub(crate) const fn with_format(mut self, format: &'static str) -> Self {
        self.format = format;
        self
    }

    /// The same column with another cell.
    pub(crate) const fn showing(mut self, cell: Cell) -> Self {
        self.cell = cell;
        self
    }

    /// Only `-o wide` shows it.
    pub(crate) const fn wide(mut self) -> Self {
        self.priority = 1;
        self
    }

    pub(crate) const fn without_header(mut self) -> Self {
        self.has_header = false;
        self
    }

    pub(super) fn cell(&self, row: &Row<'_>) -> Value {
        match self.cell {
            Cell::Text(pointer) => row.text(pointer).into(),
            Cell::TextOr(pointer, otherwise) => row.at(pointer).as_str().unwrap_or(otherwise).into(),
            Cell::Number(pointer) => row.number(pointer).into(),
            Cell::Flag(pointer) => row.flag(pointer).into(),
            Cell::Count(pointer) => row.count(pointer).into(),
            Cell::Computed(compute) => compute(row),
        }
    }
}
