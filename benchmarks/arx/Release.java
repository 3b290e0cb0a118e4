import java.io.File;
import java.nio.charset.StandardCharsets;

import org.deidentifier.arx.ARXAnonymizer;
import org.deidentifier.arx.ARXConfiguration;
import org.deidentifier.arx.ARXResult;
import org.deidentifier.arx.AttributeType;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.Data;
import org.deidentifier.arx.DataHandle;
import org.deidentifier.arx.criteria.KAnonymity;
import org.deidentifier.arx.metric.Metric;

/**
 * Writes the k-anonymous release of least loss that ARX finds, so that it can be attacked beside ours.
 * Arguments: folder, k, suppression limit, "global" or "local" recoding, then the quasi-identifiers. The folder has
 * people.csv (with commas) and a hierarchy NAME.csv (with semicolons) per quasi-identifier; release.csv is written there.
 */
public final class Release {
    public static void main(String[] args) throws Exception {
        File folder = new File(args[0]);
        Data data = Data.create(new File(folder, "people.csv"), StandardCharsets.UTF_8, ',');
        for (int i = 4; i < args.length; i++) {
            File file = new File(folder, args[i] + ".csv");
            data.getDefinition().setAttributeType(args[i], Hierarchy.create(file, StandardCharsets.UTF_8, ';'));
        }
        DataHandle input = data.getHandle();
        for (int i = 0; i < input.getNumColumns(); i++) {
            if (!data.getDefinition().getQuasiIdentifyingAttributes().contains(input.getAttributeName(i))) {
                data.getDefinition().setAttributeType(input.getAttributeName(i), AttributeType.INSENSITIVE_ATTRIBUTE);
            }
        }
        boolean local = args[3].equals("local");
        ARXConfiguration config = ARXConfiguration.create();
        config.addPrivacyModel(new KAnonymity(Integer.parseInt(args[1])));
        config.setSuppressionLimit(local ? 1d : Double.parseDouble(args[2]));
        config.setQualityModel(Metric.createLossMetric(local ? 0d : 0.5d, Metric.AggregateFunction.ARITHMETIC_MEAN));
        ARXResult result = new ARXAnonymizer().anonymize(data, config);
        DataHandle output = result.getOutput();
        if (local) {
            result.optimizeIterativeFast(output, 0.01d);
        }
        output.save(new File(folder, "release.csv"), ',');
    }
}
