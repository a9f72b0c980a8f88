//! The real benchmark graphs, where they are at hand.

mod common;

/// The test command finds tests that need the large graphs by the name of this module.
mod large_data {
    use super::common::large_data_dir;
    use blnn::data::{self, Counts};
    use blnn::{Features, Graph};

    fn load(name: &str) -> Graph {
        data::load(name, &[large_data_dir()]).expect("a published file")
    }

    /// Counts as PyTorch Geometric has them, isolated nodes, positive attributes (as NumPy counts them
    /// in the file), homophily in percent as in the paper's Table 1.
    #[track_caller]
    fn assert_published(name: &str, isolated: usize, nonzero: usize, homophily: f64) {
        let graph = load(name);
        let dataset = data::find(name).expect("a known name");
        assert_eq!(Counts::of(&graph), dataset.counts);
        assert_eq!((graph.isolated_nodes(), graph.self_loops()), (isolated, 0));
        let percent = 100.0 * graph.edge_homophily().expect("labels and edges");
        assert!((percent - homophily).abs() < 5e-3, "{percent}");
        let paper = dataset.paper.expect("a row of the table");
        assert_eq!(paper.homophily.to_bits(), homophily.to_bits());
        let differs = graph.entries().abs_diff(paper.counts.entries);
        assert_eq!(differs, usize::from(paper.remark.is_some()));
        assert_eq!(Counts { entries: graph.entries(), ..paper.counts }, dataset.counts);
        let Features::Sparse(x) = graph.features() else {
            panic!("features stay sparse");
        };
        assert_eq!(x.pattern().entries(), nonzero);
        for i in 0..graph.nodes() {
            let (columns, values) = x.row(i);
            let expected = vec![1.0 / columns.len() as f32; columns.len()];
            assert_eq!(values, expected);
        }
    }

    #[test]
    #[ignore = "needs the large graphs"]
    fn photo_is_the_published_graph() {
        assert_published("photo", 115, 1_979_909, 82.72);
    }

    #[test]
    #[ignore = "needs the large graphs"]
    fn computers_is_the_published_graph() {
        assert_published("computers", 281, 3_675_081, 77.72);
    }

    #[test]
    #[ignore = "needs the large graphs"]
    fn cs_is_the_published_graph() {
        assert_published("cs", 0, 1_092_079, 80.81);
    }

    #[test]
    #[ignore = "needs the large graphs"]
    fn physics_is_the_published_graph() {
        assert_published("physics", 0, 1_137_311, 93.14);
    }

    #[test]
    #[ignore = "needs the large graphs"]
    fn the_files_have_their_published_sums() {
        let folder = large_data_dir();
        for dataset in data::registry() {
            if let Some(path) = dataset.locate(std::slice::from_ref(&folder)) {
                dataset.verify(&path).unwrap();
            }
        }
    }

    /// Class names of the Amazon graphs are text; those of the Coauthor graphs are pickled.
    #[test]
    #[ignore = "needs the large graphs"]
    fn pickled_class_names_are_skipped() {
        let (photo, cs) = (load("photo"), load("cs"));
        assert_eq!(photo.class_names().len(), 8);
        assert!(cs.class_names().is_empty());
    }

    /// Checkpoints name their graph by this text: a change would orphan them all.
    #[test]
    #[ignore = "needs the large graphs"]
    fn the_fingerprint_is_pinned() {
        let photo = load("photo");
        let pinned = "3393b5463bde3130cb55f0c53ebb897ca3f3577648138d6e446ddc9d9c4fc3fe";
        assert_eq!(photo.fingerprint(), pinned);
    }

    #[test]
    #[ignore = "needs the large graphs"]
    fn a_cut_copy_of_a_real_file_is_refused() {
        let folder = large_data_dir();
        let bytes = std::fs::read(folder.join("ms_academic_cs.npz")).unwrap();
        for share in [0, 1, 5, 9] {
            let cut = &bytes[..bytes.len() * share / 10];
            assert!(data::npz::from_bytes("cut", cut).is_err());
        }
    }
}
