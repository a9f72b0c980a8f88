//! What the names of columns tell: which one holds the ids, and which are no part of the vectors.

/// The names that columns and members with ids go by, the likeliest first.
pub(super) const ID_NAMES: [&str; 8] =
    ["id", "ids", "node_id", "node_ids", "node", "name", "names", "word"];
/// The names that columns with classes go by. Dimensions are numbered or have a prefix, so that
/// none is called so; a shorter name, such as `y`, may well be one.
const CLASS_NAMES: [&str; 3] = ["label", "labels", "class"];

/// What a column can be, as far as its name and its values tell.
pub(super) struct Candidate<'a> {
    pub(super) name: &'a str,
    /// Whether its values can be ids.
    pub(super) nameable: bool,
}

/// Which columns of a table are what.
#[derive(Debug, Default)]
pub(super) struct Roles {
    /// The column whose name says that it holds the ids.
    pub(super) ids: Option<usize>,
    /// Columns that are neither ids nor vectors, in order.
    pub(super) left_out: Vec<usize>,
    /// The same in words, each with the reason.
    pub(super) told: Vec<String>,
}

impl Roles {
    /// The roles of all columns; `label` is what the user calls the column of the classes.
    pub(super) fn of(columns: &[Candidate<'_>], label: Option<&str>) -> Self {
        let is_class = |name: &str| is_class_name(name, label);
        let all = || columns.iter().enumerate().filter(|(_, c)| !is_class(c.name));
        let ranked = all().filter(|(_, c)| c.nameable);
        let ranked = ranked.filter_map(|(place, c)| Some((id_rank(c.name)?, place)));
        let mut roles = Self { ids: ranked.min().map(|(_, place)| place), ..Self::default() };
        for (place, column) in columns.iter().enumerate().filter(|(p, _)| roles.ids != Some(*p)) {
            let why = match column.name {
                name if is_class(name) => "called as the classes are",
                name if is_index_name(name) => "the index of a data frame",
                name if is_id_name(name) => "called as ids are",
                _ => continue,
            };
            roles.left_out.push(place);
            roles.told.push(told(place, column.name, why));
        }
        roles
    }

    /// Whether nothing says that the column is no dimension.
    pub(super) fn is_free(&self, place: usize) -> bool {
        self.ids != Some(place) && !self.left_out.contains(&place)
    }
}

/// A column that is left out, and why, in words.
pub(super) fn told(place: usize, name: &str, why: &str) -> String {
    if name.trim().is_empty() {
        return format!("column {} ({why})", place + 1);
    }
    format!("`{}` ({why})", name.trim())
}

/// Whether a column's name says that it holds ids. The index of a data frame does for want of
/// another one.
pub(super) fn is_id_name(name: &str) -> bool {
    id_rank(name).is_some()
}

/// How little a name is one of ids; none if it is not at all.
fn id_rank(name: &str) -> Option<usize> {
    let known = || ID_NAMES.iter().position(|id| name.trim().eq_ignore_ascii_case(id));
    if is_index_name(name) { Some(ID_NAMES.len()) } else { known() }
}

/// Whether a column is the index of a data frame: it has no name, or one that pandas made up.
fn is_index_name(name: &str) -> bool {
    let name = name.trim();
    name.is_empty() || name.starts_with("Unnamed: ") || name.starts_with("__index_level_")
}

/// Whether a column holds classes. A label that is a number may be that of a column in another
/// table, and columns of vectors are called by numbers: it says nothing here.
fn is_class_name(name: &str, label: Option<&str>) -> bool {
    let name = name.trim();
    let numbered = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    let label = label.map(str::trim).filter(|label| !numbered(label));
    label == Some(name) || CLASS_NAMES.iter().any(|class| name.eq_ignore_ascii_case(class))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(names: &[&str], label: Option<&str>) -> Roles {
        let columns: Vec<Candidate<'_>> =
            names.iter().map(|name| Candidate { name, nameable: true }).collect();
        Roles::of(&columns, label)
    }

    #[test]
    fn a_name_goes_before_the_index_of_a_data_frame() {
        for names in
            [["", "id", "e0"], ["Unnamed: 0", "ID", "e0"], ["__index_level_0__", "id", "x"]]
        {
            let found = roles(&names, None);
            assert_eq!((found.ids, &found.left_out[..]), (Some(1), &[0][..]), "{names:?}");
            assert!(found.told[0].ends_with("(the index of a data frame)"), "{:?}", found.told);
        }
        assert_eq!(roles(&["", "0", "1"], None).ids, Some(0));
        let found = roles(&["name", "", "id"], None);
        assert_eq!(found.ids, Some(2));
        assert_eq!(
            found.told,
            ["`name` (called as ids are)", "column 2 (the index of a data frame)"]
        );
    }

    #[test]
    fn classes_are_known_by_their_names() {
        let told = |names: &[&str], label| roles(names, label).told.join(", ");
        assert_eq!(told(&["id", "y", "e0"], Some("y")), "`y` (called as the classes are)");
        assert_eq!(told(&["Class", "x", "y"], None), "`Class` (called as the classes are)");
        assert_eq!(told(&["id", "x", "y", "classy", "label_0", "e0"], None), "");
        // `--label 1` is the first column of the table of labels.
        assert_eq!(told(&["id", "0", "1"], Some("1")), "");
        assert_eq!(roles(&["name", "e0"], Some("name")).ids, None);
    }
}
