// What jing thinks of many schemas and documents, in one process: starting Java takes longer than
// all the rest.
//
//   java -cp jing.jar Judge.java FOLDER
//
// FOLDER has a folder for each case, with schema.rnc and any number of *.xml. For each of them one
// line goes to standard output: its path, a tab, and "yes" or what is wrong with it.

import com.thaiopensource.util.PropertyMapBuilder;
import com.thaiopensource.validate.ValidateProperty;
import com.thaiopensource.validate.ValidationDriver;
import com.thaiopensource.validate.prop.rng.RngProperty;
import com.thaiopensource.validate.rng.CompactSchemaReader;
import java.io.File;
import java.io.PrintStream;
import java.util.Arrays;
import org.xml.sax.ErrorHandler;
import org.xml.sax.InputSource;
import org.xml.sax.SAXParseException;

public class Judge {
    static class First implements ErrorHandler {
        String message;

        public void warning(SAXParseException e) {}

        public void error(SAXParseException e) {
            if (message == null) message = e.getMessage();
        }

        public void fatalError(SAXParseException e) {
            error(e);
        }
    }

    interface Work {
        boolean run() throws Exception;
    }

    static final PrintStream out = new PrintStream(System.out, false);

    static boolean judge(File file, First errors, Work work) {
        boolean fine = false;
        errors.message = null;
        try {
            fine = work.run();
        } catch (Exception | StackOverflowError e) { // the latter is how it meets some recursion
            if (errors.message == null) errors.message = e.toString();
        }
        String said = errors.message == null ? "no reason" : errors.message.replaceAll("\\s+", " ");
        out.println(file + "\t" + (fine ? "yes" : said));
        return fine;
    }

    static String uri(File file) {
        return ValidationDriver.fileInputSource(file).getSystemId();
    }

    public static void main(String[] args) throws Exception {
        File[] cases = new File(args[0]).listFiles(File::isDirectory);
        Arrays.sort(cases);
        for (File folder : cases) {
            First errors = new First();
            PropertyMapBuilder options = new PropertyMapBuilder();
            options.put(ValidateProperty.ERROR_HANDLER, errors);
            ValidationDriver driver =
                new ValidationDriver(options.toPropertyMap(), CompactSchemaReader.getInstance());
            File schema = new File(folder, "schema.rnc");
            boolean fine =
                judge(schema, errors, () -> driver.loadSchema(new InputSource(uri(schema))));
            File[] documents = folder.listFiles((dir, name) -> name.endsWith(".xml"));
            Arrays.sort(documents);
            for (File document : documents)
                if (fine)
                    judge(document, errors, () -> driver.validate(new InputSource(uri(document))));
        }
        out.flush();
    }
}
