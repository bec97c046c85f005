import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Profile;
import org.springframework.kafka.annotation.EnableKafkaRetryTopic;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.DeadLetterPublishingRecoverer;
import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.kafka.retrytopic.RetryTopicConfiguration;
import org.springframework.kafka.retrytopic.RetryTopicConfigurationBuilder;
import org.springframework.kafka.support.ProducerListener;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.util.backoff.FixedBackOff;

/** Fails on each record that has a header `fail`, and ends when so many letters are written; see tools/spring. */
public class Orders {
    static CountDownLatch letters;
    static final AtomicInteger failures = new AtomicInteger();

    public static void main(String[] args) throws Exception {
        letters = new CountDownLatch(Integer.parseInt(args[2]));
        System.setProperty("topic", args[1]);
        var application = new AnnotationConfigApplicationContext();
        application.getEnvironment().setActiveProfiles(args[0]);
        application.register(Settings.class);
        application.refresh();
        boolean written = letters.await(60, TimeUnit.SECONDS);
        application.close();
        if (!written) {
            System.err.println(letters.getCount() + " letters of " + args[2] + " were not written within 60 s");
            System.exit(1);
        }
        String version = KafkaTemplate.class.getPackage().getImplementationVersion();
        System.out.println("Spring Kafka " + version + " failed " + failures + " times");
    }

    @Configuration(proxyBeanMethods = false)
    @EnableKafkaRetryTopic
    static class Settings {
        static final String BROKERS = System.getenv("REDRIVE_KAFKA");

        @Bean
        Listener listener() {
            return new Listener();
        }

        @Bean
        KafkaTemplate<byte[], byte[]> kafkaTemplate() {
            Map<String, Object> settings = Map.of(
                "bootstrap.servers", BROKERS,
                "key.serializer", ByteArraySerializer.class,
                "value.serializer", ByteArraySerializer.class);
            var template = new KafkaTemplate<byte[], byte[]>(new DefaultKafkaProducerFactory<>(settings));
            template.setProducerListener(new ProducerListener<>() {
                @Override
                public void onSuccess(ProducerRecord<byte[], byte[]> record, RecordMetadata at) {
                    if (record.topic().endsWith("-dlt")) {
                        letters.countDown();
                    }
                }
            });
            return template;
        }

        @Bean
        ConcurrentKafkaListenerContainerFactory<byte[], byte[]> kafkaListenerContainerFactory() {
            Map<String, Object> settings = Map.of(
                "bootstrap.servers", BROKERS,
                "auto.offset.reset", "earliest",
                "key.deserializer", ByteArrayDeserializer.class,
                "value.deserializer", ByteArrayDeserializer.class);
            var factory = new ConcurrentKafkaListenerContainerFactory<byte[], byte[]>();
            factory.setConsumerFactory(new DefaultKafkaConsumerFactory<>(settings));
            return factory;
        }

        @Bean
        ThreadPoolTaskScheduler scheduler() {
            return new ThreadPoolTaskScheduler();
        }

        /** Tried again where it stands, once, and then a letter. */
        @Bean
        @Profile("recoverer")
        DefaultErrorHandler recoverer(
                KafkaTemplate<byte[], byte[]> template, ConcurrentKafkaListenerContainerFactory<byte[], byte[]> factory) {
            var handler = new DefaultErrorHandler(new DeadLetterPublishingRecoverer(template), new FixedBackOff(0, 1));
            factory.setCommonErrorHandler(handler);
            return handler;
        }

        /** Tried again from TOPIC-retry, once, and then a letter. */
        @Bean
        @Profile("retry-topics")
        RetryTopicConfiguration retryTopics(KafkaTemplate<byte[], byte[]> template) {
            return RetryTopicConfigurationBuilder.newInstance()
                .fixedBackOff(100)
                .maxAttempts(2)
                .doNotAutoCreateRetryTopics()
                .create(template);
        }
    }

    static class Listener {
        @KafkaListener(topics = "${topic}", groupId = "${topic}-billing")
        void bill(ConsumerRecord<byte[], byte[]> order) {
            if (order.headers().lastHeader("fail") != null) {
                failures.incrementAndGet();
                throw new IllegalStateException("cannot bill", new IllegalArgumentException("no such customer"));
            }
        }
    }
}
