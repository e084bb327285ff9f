import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringWriter;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.util.Base64;
import java.util.Map;
import org.apache.commons.lang3.StringEscapeUtils;
import org.apache.velocity.VelocityContext;
import org.apache.velocity.app.VelocityEngine;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * Renders a mapping template as API Gateway does. The first line of the input is the template; each further line is a
 * frame: connection id, request id and text. Each line of the output is a rendered template. All texts are base64.
 */
public class MappingTemplate {
    public static void main(String[] arguments) throws Exception {
        var engine = new VelocityEngine();
        engine.init();
        var lines = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        var template = decoded(lines.readLine());
        for (var line = lines.readLine(); line != null; line = lines.readLine()) {
            var words = line.split(" ", -1);
            var context = new VelocityContext();
            context.put("context", Map.of("connectionId", decoded(words[0]), "requestId", decoded(words[1])));
            context.put("input", Map.of("body", decoded(words[2])));
            context.put("util", new Util());
            var rendered = new StringWriter();
            engine.evaluate(context, rendered, "template", template);
            System.out.println(Base64.getEncoder().encodeToString(rendered.toString().getBytes(UTF_8)));
        }
    }

    private static String decoded(String word) {
        return new String(Base64.getDecoder().decode(word), UTF_8);
    }

    /** The functions of $util without `parseJson`, which no template here needs. */
    public static class Util {
        /** Escapes a text by the rules of JavaScript; API Gateway turns ' into \', which is no JSON. */
        public String escapeJavaScript(String text) {
            return StringEscapeUtils.escapeEcmaScript(text);
        }

        /** Converts a text into the format application/x-www-form-urlencoded. */
        public String urlEncode(String text) {
            return URLEncoder.encode(text, UTF_8);
        }

        public String urlDecode(String text) {
            return URLDecoder.decode(text, UTF_8);
        }

        public String base64Encode(String text) {
            return Base64.getEncoder().encodeToString(text.getBytes(UTF_8));
        }

        public String base64Decode(String text) {
            return new String(Base64.getDecoder().decode(text), UTF_8);
        }
    }
}
