/** Texts of the kinds that people send to models, written for these tests. */
export const SAMPLES: Record<string, string> = {
  english: `The harbour had been empty since the storm. On the third morning two trawlers came back, low in the water and
without their nets, and the whole village walked down to the quay to count the men on deck. Nobody waved. My
grandmother, who'd buried a husband and two brothers in that sea, said only: "They'll want soup," and went home to
make it. Years later I asked her what she'd have done if the boats hadn't returned. She looked at me as though I'd
asked what she would do if the sun didn't rise. "The same," she said. "Soup's for the ones who wait, too."`,
  german: `Der Ausschuss hat in seiner gestrigen Sitzung beschlossen, die Straßenbahnverlängerung bis zum Hauptbahnhof
weiterzuführen. Für die Übergangszeit werden Ersatzbusse eingesetzt, deren Fahrpläne an den Haltestellen aushängen.
Größere Beeinträchtigungen seien nicht zu erwarten, erklärte die Geschäftsführerin der Verkehrsbetriebe; gleichwohl
müssten Fahrgäste während der Bauarbeiten mit Verspätungen von zehn bis fünfzehn Minuten rechnen.`,
  french: `L'atelier sentait la colle et le bois de noyer. Au fond, près de la fenêtre, un vieil homme réparait une
guitare dont la table était fendue ; il ne leva pas les yeux lorsque j'entrai. « Posez-la là-bas », dit-il simplement.
J'ai attendu. À côté de lui, une radio grésillait des nouvelles d'un pays où l'été ne finissait jamais.`,
  spanish: `Mañana saldremos temprano hacia la sierra. Según el pronóstico, lloverá por la tarde, así que conviene llevar
chubasquero y calzado impermeable. ¿Has preparado ya los bocadillos? Si no, podemos comprar algo en la estación;
además, mi hermano quiere enseñarnos un camino que, según él, casi nadie conoce.`,
  polish: `W zeszłym tygodniu zakończyliśmy przebudowę biblioteki miejskiej. Nowe pomieszczenia są jaśniejsze, a czytelnia
mieści trzykrotnie więcej osób niż przedtem. Książki, które przez pół roku leżały w magazynie, wróciły na półki dzięki
pomocy kilkudziesięciu wolontariuszy.`,
  turkish: `Kütüphanenin açılış saatleri önümüzdeki haftadan itibaren değişiyor. Hafta içi sabah dokuzda açılacak, akşam
sekizde kapanacağız. Öğrencilerimizin isteği üzerine cumartesi günleri de çalışma salonlarını açık tutacağız; ancak
ödünç verme hizmeti yalnızca hafta içi sürecek.`,
  vietnamese: `Buổi sáng ở chợ nổi bắt đầu từ rất sớm. Khi mặt trời còn chưa mọc, những chiếc ghe chở đầy trái cây đã neo sát
vào nhau, tiếng người gọi nhau vang cả một khúc sông. Bà tôi thường mua một ít rau, vài con cá, rồi ngồi uống cà phê
với người bán hàng quen.`,
  russian: `Поезд пришёл на станцию с опозданием почти на час. На перроне уже никого не было, кроме дежурного, который
подметал мокрые листья и негромко напевал. Я спросил, далеко ли до гостиницы. «Пешком минут двадцать, — ответил он, —
но лучше подождите: сейчас поедет почтовая машина, она вас и довезёт». Так я познакомился с Николаем Петровичем.`,
  ukrainian: `Навесні ми посадили за хатою три яблуні. Дві прийнялися одразу, а третя стояла гола аж до червня, і дід уже
хотів її викопати. Та одного ранку на ній з'явився перший листок, і відтоді він щодня виходив подивитися, чи росте.`,
  greek: `Το καράβι έφτασε αργά το απόγευμα στο νησί. Στην προκυμαία μάς περίμενε ο ξάδερφός μου με ένα παλιό φορτηγάκι,
γεμάτο καρπούζια. Ανεβήκαμε όλοι πίσω και ξεκινήσαμε για το χωριό, ενώ ο ήλιος έδυε πίσω από τα βουνά.`,
  arabic: `وصلنا إلى المدينة القديمة قبل غروب الشمس بقليل. كانت الأزقة ضيقة ومزدحمة، وروائح الخبز والتوابل تملأ المكان. سألنا
رجلاً مسناً عن الطريق إلى الفندق، فابتسم وقال إن الطريق سهل: امشوا مع صوت الماء حتى تصلوا إلى النافورة، ثم انعطفوا
يميناً. لم نجد النافورة، لكننا وجدنا مقهى صغيراً بقينا فيه حتى منتصف الليل.`,
  hebrew: `בבוקר ירד גשם קל, והרחובות היו ריקים מאדם. ישבתי ליד החלון עם כוס תה וחיכיתי לטלפון מאחותי. היא הבטיחה להתקשר
ברגע שתגיע לתחנה, אבל השעה כבר הייתה אחת־עשרה והטלפון שתק. לבסוף יצאתי לחפש אותה בעצמי.`,
  hindi: `गाँव के बाहर एक पुराना कुआँ था, जिसके पास बरगद का बड़ा पेड़ खड़ा था। गर्मियों की दोपहर में बच्चे वहीं खेलते थे और बूढ़े लोग
छाया में बैठकर पुरानी कहानियाँ सुनाते थे। इस साल बारिश देर से आई, इसलिए कुएँ का पानी बहुत नीचे चला गया।`,
  thai: `ร้านหนังสือเล็ก ๆ ที่หัวมุมถนนเปิดมานานกว่าสี่สิบปีแล้ว เจ้าของร้านเป็นหญิงชราที่จำชื่อลูกค้าได้ทุกคน ทุกเย็นวันศุกร์เธอจะชงชา
แล้วชวนเด็ก ๆ แถวนั้นมานั่งอ่านหนังสือด้วยกันจนร้านปิด`,
  chinese: `昨天晚上下了一场大雪，早上推开窗户，院子里的树全都白了。爷爷已经扫出了一条小路，从门口一直通到井边。他说，
今年的雪来得比往年早，麦子有了这层被子，明年一定丰收。吃过早饭，我们几个孩子就在巷子里堆起了雪人，用胡萝卜做鼻子，
用两颗黑扣子做眼睛。到了中午，太阳出来了，雪人的帽子开始一点一点地往下滑。`,
  traditional: `這家餐廳開在老街的盡頭，門口掛著兩盞紅燈籠。老闆娘總是笑著說：「慢慢吃，不夠再添。」我們點了滷肉飯、燙青菜
和一碗魚丸湯，味道和二十年前一模一樣。`,
  japanese: `駅前の喫茶店は、今日も静かだった。窓際の席に座ってコーヒーを頼むと、マスターは何も言わずに古いレコードをかけてくれる。
雨の音とピアノの音がゆっくりと混ざり合い、気がつけば一時間も本のページをめくっていなかった。「また来ます」と言って店を出ると、
空はもう晴れていた。`,
  korean: `할머니 댁은 버스 종점에서도 한참을 더 걸어야 하는 산골에 있었다. 여름방학이 되면 우리는 그곳에서 한 달을 보냈다. 아침에는
닭 우는 소리에 잠을 깨고, 낮에는 개울에서 가재를 잡았으며, 밤에는 마당에 누워 별을 셌다.`,
  emoji: `Launch day!! 🚀🚀 The team did it 🎉👏🏽 … next stop: Zürich 🇨🇭 ✈️ (see you there 👩‍💻👨‍👩‍👧‍👦) — 10/10 ⭐️⭐️⭐️⭐️⭐️ “best release yet” ™`,
  markdown: `# Release 4.2

## What changed

- **Faster imports**: large files are read in parallel ([#1841](https://example.org/issues/1841)).
- \`config.strict\` is now \`true\` by default. See the [migration guide](./docs/migrate.md#strict).
- Removed \`--legacy-peer\`; it has printed a warning since 3.9.

| Option      | Type      | Default | Notes                |
|-------------|-----------|--------:|----------------------|
| \`timeout\`   | \`number\`  |    5000 | milliseconds         |
| \`retries\`   | \`number\`  |       3 | \`0\` turns them off   |

> **Note**: nothing is written to disk until \`commit()\` returns.

\`\`\`sh
npm install example@4.2.0 && npx example doctor --fix
\`\`\`
`,
  typescript: `export class TokenBucket {
  #tokens: number
  #updatedAt: number

  constructor(readonly capacity: number, readonly perSecond: number, private readonly now: () => number) {
    this.#tokens = capacity
    this.#updatedAt = now()
  }

  /** Takes \`count\` tokens, or says how many milliseconds are missing. */
  take(count = 1): { ok: true } | { ok: false; retryAfterMs: number } {
    const elapsed = (this.now() - this.#updatedAt) / 1_000
    this.#tokens = Math.min(this.capacity, this.#tokens + elapsed * this.perSecond)
    this.#updatedAt = this.now()
    if (this.#tokens >= count) {
      this.#tokens -= count
      return { ok: true }
    }
    return { ok: false, retryAfterMs: Math.ceil(((count - this.#tokens) / this.perSecond) * 1_000) }
  }
}
`,
  python: `import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True)
class Crawler:
    start: str
    limit: int = 100
    seen: set[str] = field(default_factory=set)

    async def run(self) -> dict[str, int]:
        queue: asyncio.Queue[str] = asyncio.Queue()
        await queue.put(self.start)
        depth_of = {self.start: 0}
        while not queue.empty() and len(self.seen) < self.limit:
            url = await queue.get()
            if url in self.seen:
                continue
            self.seen.add(url)
            for link in await self.links_of(url):
                if link not in depth_of:
                    depth_of[link] = depth_of[url] + 1
                    await queue.put(link)
        return {url: depth for url, depth in sorted(depth_of.items(), key=lambda pair: pair[1])}
`,
  sql: `SELECT o.id, o.created_at::date AS day, SUM(i.quantity * i.unit_price_cents) / 100.0 AS total
FROM orders AS o
JOIN order_items AS i ON i.order_id = o.id
LEFT JOIN refunds AS r ON r.order_id = o.id AND r.status <> 'rejected'
WHERE o.created_at >= now() - INTERVAL '30 days' AND r.id IS NULL
GROUP BY 1, 2
HAVING SUM(i.quantity) > 3
ORDER BY total DESC NULLS LAST
LIMIT 50;
`,
  html: `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>Status</title><link rel="stylesheet" href="/assets/main.css?v=20260114"></head>
  <body class="layout layout--wide">
    <nav aria-label="Main"><ul><li><a href="/incidents">Incidents</a></li><li><a href="/about">About</a></li></ul></nav>
    <main id="content"><h1>All systems operational</h1><p>Last checked <time datetime="2026-01-14T08:30:00Z">just now</time>.</p></main>
    <script type="module">document.querySelector('#content').dataset.ready = 'true'</script>
  </body>
</html>
`,
  json: `{
  "orderId": "ord_8f14e45fceea167a",
  "customer": { "name": "Ingrid Sæther", "email": "ingrid@example.com", "vip": false },
  "items": [
    { "sku": "KB-104-DE", "quantity": 1, "price": { "amount": 12990, "currency": "EUR" }, "tags": ["keyboard", "wired"] },
    { "sku": "MS-220", "quantity": 2, "price": { "amount": 3450, "currency": "EUR" }, "tags": [] }
  ],
  "shipping": { "method": "express", "address": { "street": "Storgata 14", "zip": "0184", "city": "Oslo", "country": "NO" } },
  "createdAt": "2026-02-03T17:42:09.113Z",
  "notes": null
}
`,
  logs: `2026-03-09T04:12:55.018Z INFO  [worker-3] job=7c1d started queue=mail attempt=1
2026-03-09T04:12:55.402Z WARN  [worker-3] smtp 10.0.4.17:587 answered 421 4.7.0, retrying in 2000 ms
2026-03-09T04:12:57.409Z ERROR [worker-3] job=7c1d failed: Error: connect ECONNREFUSED 10.0.4.17:587
    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1637:16)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)
2026-03-09T04:12:57.411Z INFO  [scheduler] job=7c1d requeued due=2026-03-09T04:13:57Z (1 of 5)
192.168.7.21 - - [09/Mar/2026:04:13:02 +0000] "GET /healthz HTTP/1.1" 200 2 "-" "kube-probe/1.31" 0.001
`,
  csv: `date,station,temperature_c,humidity_pct,pressure_hpa,wind_ms
2026-01-01,EDDF,-1.4,86,1021.7,3.6
2026-01-02,EDDF,0.2,91,1017.3,5.1
2026-01-03,EDDF,2.9,88,1009.8,7.7
2026-01-04,EDDF,4.0,79,1004.2,9.3
2026-01-05,EDDF,3.1,83,1008.5,6.2
`,
  identifiers: `commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904
uuid 0b0e8f0c-6a53-4c8a-9d3c-2f3f6a1f7be2, sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkV4YW1wbGUifQ.c2lnbmF0dXJl
`,
}
