import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData.DescribedGroup;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData.Member;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData.TaskIds;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentInfo;
import org.apache.kafka.streams.processor.internals.assignment.SubscriptionInfo;
import org.apache.kafka.streams.state.HostInfo;

/**
 * Kafka's own classes as the oracle of the bytes of classic Streams groups; one JSON object a line.
 *
 * encode SEED ROUNDS: infos of every version, encoded by Kafka, each with its facts as Kafka decodes them again.
 * describe: a StreamsGroupDescribe response (KIP-1071, version 0) as hex.
 * decode: "SubscriptionInfo HEX" or "AssignmentInfo HEX" a line on standard input; its facts, or null if refused.
 */
public class StreamsBytes {
    private static final int LATEST = 11;

    public static void main(final String[] args) throws Exception {
        if (args[0].equals("decode")) {
            final BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                final String[] parts = line.split(" ");
                System.out.println(facts(parts[0], HexFormat.of().parseHex(parts[1])));
            }
            return;
        }
        if (args[0].equals("describe")) {
            System.out.println(HexFormat.of().formatHex(described()));
            return;
        }
        final Random random = new Random(Long.parseLong(args[1]));
        for (int round = 0; round < Integer.parseInt(args[2]); round++) {
            for (int version = 1; version <= LATEST; version++) {
                print("SubscriptionInfo", subscription(version, random), random);
                print("AssignmentInfo", assignment(version, random), random);
            }
        }
    }

    private static void print(final String what, final ByteBuffer data, final Random random) {
        final byte[] bytes = new byte[data.remaining()];
        data.duplicate().get(bytes);
        final short framing = (short) random.nextInt(4);
        final ByteBuffer framed;
        if (what.equals("SubscriptionInfo")) {
            final List<TopicPartition> owned = List.copyOf(partitions(random));
            framed = ConsumerProtocol.serializeSubscription(
                new Subscription(List.of("streams-plaintext-input", "größe"), ByteBuffer.wrap(bytes), owned), framing);
        } else {
            framed = ConsumerProtocol.serializeAssignment(
                new Assignment(List.copyOf(partitions(random)), ByteBuffer.wrap(bytes)), framing);
        }
        final byte[] whole = new byte[framed.remaining()];
        framed.get(whole);
        final HexFormat hex = HexFormat.of();
        System.out.println("{\"what\": \"" + what + "\", \"hex\": \"" + hex.formatHex(bytes) + "\", \"member\": \""
            + hex.formatHex(whole) + "\", \"facts\": " + facts(what, bytes) + "}");
    }

    // -- Encoding: random infos ---------------------------------------------------------------------------------------

    private static ByteBuffer subscription(final int version, final Random random) {
        final Map<TaskId, Long> sums = new LinkedHashMap<>();
        for (final TaskId task : tasks(version, random)) {
            // -2 LATEST_OFFSET, -3 UNKNOWN_OFFSET_SUM, else a sum
            sums.put(task, List.of(-2L, -3L, 0L, Math.abs(random.nextLong())).get(random.nextInt(4)));
        }
        final Map<String, String> tags = new LinkedHashMap<>();
        for (int i = random.nextInt(4); i > 0 && version >= 11; i--) {
            tags.put(List.of("zone", "cluster", "größe", "rack-" + i).get(i), "v" + random.nextInt(3) + "é");
        }
        final UUID process = new UUID(random.nextLong(), random.nextLong());
        final String endPoint = random.nextBoolean() ? "host-" + random.nextInt(9) + ":80" : null;
        return new SubscriptionInfo(version, version < 3 ? -1 : LATEST, new ProcessId(process), endPoint, sums,
            (byte) random.nextInt(256), random.nextInt(2) * 5, tags).encode();
    }

    private static ByteBuffer assignment(final int version, final Random random) {
        final Map<TaskId, Set<TopicPartition>> standby = new LinkedHashMap<>();
        for (final TaskId task : tasks(version, random)) {
            standby.put(task, partitions(random));
        }
        final AssignmentInfo info = new AssignmentInfo(version, LATEST, List.copyOf(tasks(version, random)), standby,
            hosts(random), hosts(random), random.nextInt(4) == 0 ? random.nextInt(5) : 0);
        if (version >= 7 && random.nextBoolean()) {
            info.setNextRebalanceTime(Math.abs(random.nextLong()));
        }
        return info.encode();
    }

    private static Set<TaskId> tasks(final int version, final Random random) {
        final Set<TaskId> tasks = new LinkedHashSet<>();
        for (int i = random.nextInt(5); i > 0; i--) {
            final String name = version >= 10 && random.nextInt(3) == 0 ? "pays-é" + random.nextInt(3) : null;
            tasks.add(new TaskId(random.nextInt(4), random.nextInt(12), name));
        }
        return tasks;
    }

    private static Set<TopicPartition> partitions(final Random random) {
        final Set<TopicPartition> partitions = new LinkedHashSet<>();
        for (int i = random.nextInt(4); i > 0; i--) {
            partitions.add(new TopicPartition("topic-" + random.nextInt(4), random.nextInt(300)));
        }
        return partitions;
    }

    private static Map<HostInfo, Set<TopicPartition>> hosts(final Random random) {
        final Map<HostInfo, Set<TopicPartition>> hosts = new LinkedHashMap<>();
        for (int i = random.nextInt(3); i > 0; i--) {
            hosts.put(new HostInfo("host-" + i, 1000 + i), partitions(random));
        }
        return hosts;
    }

    // -- Encoding: an answer of the broker's --------------------------------------------------------------------------

    /** Two threads of p1 in az1 and one of p2 in az2; subtopology 0 stateless, 1 with a changelog and a warm-up of 1_1. */
    private static byte[] described() {
        final StreamsGroupDescribeResponseData.Subtopology first = new StreamsGroupDescribeResponseData.Subtopology()
            .setSubtopologyId("0").setSourceTopics(List.of("in")).setRepartitionSinkTopics(List.of("app-x-repartition"));
        final StreamsGroupDescribeResponseData.Subtopology second = new StreamsGroupDescribeResponseData.Subtopology()
            .setSubtopologyId("1")
            .setStateChangelogTopics(List.of(topic("app-x-changelog")))
            .setRepartitionSourceTopics(List.of(topic("app-x-repartition")));
        final DescribedGroup group = new DescribedGroup().setGroupId("app").setGroupState("Stable").setGroupEpoch(7)
            .setAssignmentEpoch(7)
            .setTopology(new StreamsGroupDescribeResponseData.Topology().setEpoch(3).setSubtopologies(List.of(first, second)))
            .setMembers(List.of(
                member("m1", "p1", "az1", placed(List.of(ids("0", 0, 10), ids("1", 0)), List.of(), List.of())),
                member("m2", "p1", "az1", placed(List.of(ids("0", 1)), List.of(), List.of(ids("1", 1)))),
                member("m3", "p2", "az2", placed(List.of(ids("1", 1)), List.of(ids("1", 0)), List.of()))
                    .setUserEndpoint(new StreamsGroupDescribeResponseData.Endpoint().setHost("h").setPort(65535))));
        final DescribedGroup unknown = new DescribedGroup().setGroupId("gone").setErrorCode((short) 69)
            .setErrorMessage("Group gone not found.");
        final StreamsGroupDescribeResponseData data =
            new StreamsGroupDescribeResponseData().setGroups(List.of(group, unknown));
        final ByteBuffer written = MessageUtil.toByteBufferAccessor(data, (short) 0).buffer();
        final byte[] bytes = new byte[written.remaining()];
        written.get(bytes);
        return bytes;
    }

    private static Member member(final String id, final String process, final String zone, final StreamsAssignment tasks) {
        return new Member().setMemberId(id).setMemberEpoch(7).setClientId("c").setClientHost("/h").setTopologyEpoch(3)
            .setProcessId(process).setClientTags(List.of(
                new StreamsGroupDescribeResponseData.KeyValue().setKey("zone").setValue(zone)))
            .setTaskOffsets(List.of(new StreamsGroupDescribeResponseData.TaskOffset().setSubtopologyId("1").setOffset(5)))
            .setAssignment(tasks.data()).setTargetAssignment(tasks.data());
    }

    private record StreamsAssignment(List<TaskIds> active, List<TaskIds> standby, List<TaskIds> warmup) {
        StreamsGroupDescribeResponseData.Assignment data() {
            return new StreamsGroupDescribeResponseData.Assignment()
                .setActiveTasks(active).setStandbyTasks(standby).setWarmupTasks(warmup);
        }
    }

    private static StreamsAssignment placed(
        final List<TaskIds> active, final List<TaskIds> standby, final List<TaskIds> warmup) {
        return new StreamsAssignment(active, standby, warmup);
    }

    private static TaskIds ids(final String subtopology, final Integer... partitions) {
        return new TaskIds().setSubtopologyId(subtopology).setPartitions(List.of(partitions));
    }

    private static StreamsGroupDescribeResponseData.TopicInfo topic(final String name) {
        return new StreamsGroupDescribeResponseData.TopicInfo().setName(name).setReplicationFactor((short) 3);
    }

    // -- Decoding: what Kafka reads -----------------------------------------------------------------------------------

    private static String facts(final String what, final byte[] data) {
        try {
            return what.equals("SubscriptionInfo") ? subscriptionFacts(data) : assignmentFacts(data);
        } catch (final RuntimeException refused) {
            return "null";
        }
    }

    private static String subscriptionFacts(final byte[] data) {
        final SubscriptionInfo info = SubscriptionInfo.decode(ByteBuffer.wrap(data));
        final boolean sums = info.version() >= 7;
        final Map<String, String> tags = new TreeMap<>();
        info.clientTags().forEach((key, value) -> tags.put(key, quoted(value)));
        final Map<String, String> offsets = new TreeMap<>();
        if (sums) {
            info.taskOffsetSums().forEach((task, sum) -> offsets.put(task.toString(), sum.toString()));
        }
        return object(
            "version", "" + info.version(),
            "latest_supported", "" + info.latestSupportedVersion(),
            "process", quoted(info.processId().toString()),
            "end_point", quoted(info.userEndPoint() == null ? "" : info.userEndPoint()),
            "offset_sums", object(offsets),
            "previous_active", sums ? "[]" : array(info.prevTasks()),
            "previous_standby", sums ? "[]" : array(info.standbyTasks()),
            "error", "" + info.errorCode(),
            "tags", object(tags));
    }

    private static String assignmentFacts(final byte[] data) {
        final AssignmentInfo info = AssignmentInfo.decode(ByteBuffer.wrap(data));
        return object(
            "version", "" + info.version(),
            "commonly_supported", "" + info.commonlySupportedVersion(),
            "active", array(info.activeTasks()),
            "standby", array(info.standbyTasks().keySet()),
            "error", "" + info.errCode(),
            "next_rebalance_ms", "" + info.nextRebalanceMs());
    }

    private static String object(final String... pairs) {
        final Map<String, String> members = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            members.put(pairs[i], pairs[i + 1]);
        }
        return object(members);
    }

    private static String object(final Map<String, String> members) {
        final List<String> written = new ArrayList<>();
        members.forEach((key, value) -> written.add(quoted(key) + ": " + value));
        return "{" + String.join(", ", written) + "}";
    }

    private static String array(final Collection<TaskId> tasks) {
        final Set<String> written = new TreeSet<>();
        tasks.forEach(task -> written.add(quoted(task.toString())));
        return "[" + String.join(", ", written) + "]";
    }

    private static String quoted(final String text) {
        final StringBuilder out = new StringBuilder("\"");
        for (final char c : text.toCharArray()) {
            out.append(c < ' ' || c == '"' || c == '\\' || c > '~' ? String.format("\\u%04x", (int) c) : "" + c);
        }
        return out.append('"').toString();
    }
}
