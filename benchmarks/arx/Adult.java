import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;

import org.deidentifier.arx.ARXAnonymizer;
import org.deidentifier.arx.ARXConfiguration;
import org.deidentifier.arx.ARXResult;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.Data;
import org.deidentifier.arx.criteria.KAnonymity;
import org.deidentifier.arx.metric.Metric;

/**
 * Runs ARX's optimal search on Adult so that it can be timed beside ours.
 * Arguments: folder with adult.csv and its hierarchies, then triples k, suppression limit, repetitions.
 * Prints one line per problem: k, limit, CPU seconds of the best repetition, loss.
 */
public final class Adult {
    private static final String[] QUASI = {
        "age", "education", "marital-status", "native-country", "occupation", "race", "salary-class", "sex", "workclass"
    };

    public static void main(String[] args) throws Exception {
        for (int i = 1; i + 2 < args.length; i += 3) {
            int k = Integer.parseInt(args[i]);
            double limit = Double.parseDouble(args[i + 1]);
            double best = Double.MAX_VALUE;
            double loss = 0;
            for (int run = 0; run < Integer.parseInt(args[i + 2]); run++) {
                Data data = read(args[0]);
                ARXConfiguration config = ARXConfiguration.create();
                config.addPrivacyModel(new KAnonymity(k));
                config.setSuppressionLimit(limit);
                config.setQualityModel(Metric.createLossMetric(Metric.AggregateFunction.GEOMETRIC_MEAN));
                ThreadMXBean clock = ManagementFactory.getThreadMXBean();
                long start = clock.getCurrentThreadCpuTime();
                ARXResult result = new ARXAnonymizer().anonymize(data, config);
                best = Math.min(best, (clock.getCurrentThreadCpuTime() - start) / 1e9);
                loss = Double.parseDouble(result.getGlobalOptimum().getHighestScore().toString());
            }
            System.out.printf("%d %s %.4f %.7f%n", k, args[i + 1], best, loss);
        }
    }

    private static Data read(String folder) throws Exception {
        Data data = Data.create(new File(folder, "adult.csv"), StandardCharsets.UTF_8, ';');
        for (String column : QUASI) {
            File file = new File(folder, "adult_hierarchy_" + column + ".csv");
            data.getDefinition().setAttributeType(column, Hierarchy.create(file, StandardCharsets.UTF_8, ';'));
        }
        return data;
    }
}
