import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;

import org.deidentifier.arx.ARXAnonymizer;
import org.deidentifier.arx.ARXConfiguration;
import org.deidentifier.arx.ARXLattice.ARXNode;
import org.deidentifier.arx.ARXResult;
import org.deidentifier.arx.AttributeType;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.Data;
import org.deidentifier.arx.criteria.BasicBLikeness;
import org.deidentifier.arx.criteria.DistinctLDiversity;
import org.deidentifier.arx.criteria.EntropyLDiversity;
import org.deidentifier.arx.criteria.EqualDistanceTCloseness;
import org.deidentifier.arx.criteria.HierarchicalDistanceTCloseness;
import org.deidentifier.arx.criteria.KAnonymity;
import org.deidentifier.arx.criteria.OrderedDistanceTCloseness;
import org.deidentifier.arx.criteria.PrivacyCriterion;
import org.deidentifier.arx.criteria.RecursiveCLDiversity;
import org.deidentifier.arx.metric.Metric;

/**
 * Runs ARX's optimal search on Adult with a sensitive column, so that it can be timed beside ours.
 * Arguments: folder with adult.csv and its hierarchies, then triples model, suppression limit, repetitions.
 * A model is its name and its parameters, with colons between them.
 * Prints one line per problem: model, limit, CPU seconds of the best repetition, loss, nodes that were checked.
 */
public final class Models {
    private static final String SENSITIVE = "occupation";
    private static final String[] QUASI = {
        "age", "education", "marital-status", "native-country", "race", "salary-class", "sex", "workclass"
    };

    public static void main(String[] args) throws Exception {
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        for (int i = 1; i + 2 < args.length; i += 3) {
            double best = Double.MAX_VALUE;
            String loss = "none";
            int seen = 0;
            for (int run = 0; run < Integer.parseInt(args[i + 2]); run++) {
                Data data = read(args[0]);
                ARXConfiguration config = ARXConfiguration.create();
                config.addPrivacyModel(new KAnonymity(5));
                config.addPrivacyModel(model(args[i].split(":"), args[0]));
                config.setSuppressionLimit(Double.parseDouble(args[i + 1]));
                config.setQualityModel(Metric.createLossMetric(Metric.AggregateFunction.GEOMETRIC_MEAN));
                long start = clock.getCurrentThreadCpuTime();
                ARXResult result = new ARXAnonymizer().anonymize(data, config);
                best = Math.min(best, (clock.getCurrentThreadCpuTime() - start) / 1e9);
                loss = result.isResultAvailable() ? result.getGlobalOptimum().getHighestScore().toString() : "none";
                seen = 0;
                for (ARXNode[] level : result.getLattice().getLevels()) {
                    for (ARXNode node : level) {
                        seen += node.isChecked() ? 1 : 0;
                    }
                }
            }
            System.out.printf("%s %s %.4f %s %d%n", args[i], args[i + 1], best, loss, seen);
        }
    }

    private static PrivacyCriterion model(String[] part, String folder) throws Exception {
        double first = Double.parseDouble(part[1]);
        switch (part[0]) {
            case "distinct": return new DistinctLDiversity(SENSITIVE, (int) first);
            case "entropy": return new EntropyLDiversity(SENSITIVE, first);
            case "recursive": return new RecursiveCLDiversity(SENSITIVE, first, Integer.parseInt(part[2]));
            case "equal": return new EqualDistanceTCloseness(SENSITIVE, first);
            case "ordered": return new OrderedDistanceTCloseness(SENSITIVE, first);
            case "hierarchical": return new HierarchicalDistanceTCloseness(SENSITIVE, first, hierarchy(folder, SENSITIVE));
            case "likeness": return new BasicBLikeness(SENSITIVE, first);
            default: throw new IllegalArgumentException(part[0]);
        }
    }

    private static Hierarchy hierarchy(String folder, String column) throws Exception {
        return Hierarchy.create(new File(folder, "adult_hierarchy_" + column + ".csv"), StandardCharsets.UTF_8, ';');
    }

    private static Data read(String folder) throws Exception {
        Data data = Data.create(new File(folder, "adult.csv"), StandardCharsets.UTF_8, ';');
        for (String column : QUASI) {
            data.getDefinition().setAttributeType(column, hierarchy(folder, column));
        }
        data.getDefinition().setAttributeType(SENSITIVE, AttributeType.SENSITIVE_ATTRIBUTE);
        return data;
    }
}
