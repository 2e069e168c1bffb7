/**
 * Top-level domains of the IANA root zone that are in common use: all country codes, and generic ones. Kept as text
 * so that it stays small; a name that is missing here costs recall of bare domains only.
 */
const COUNTRY_CODES =
  'ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bw by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fm fo fr ga gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sk sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw'
const GENERIC =
  'com org net edu gov mil int arpa aero asia biz cat coop info jobs mobi museum name post pro tel travel xxx academy accountant accountants actor adult agency airforce apartments app army art associates attorney auction audio auto autos baby band bank bar bargains basketball beauty beer best bet bid bike bingo bio black blog blue boats bond boo book boutique broker build builders business buy buzz cab cafe cam camera camp capital car cards care career careers cars casa cash casino catering center ceo charity chat cheap christmas church city claims cleaning click clinic clothing cloud club coach codes coffee college community company compare computer condos construction consulting contact contractors cooking cool country coupons courses credit creditcard cricket cruises cyou dad dance date dating day deal dealer deals degree delivery democrat dental dentist design dev diamonds diet digital direct directory discount diy docs doctor dog domains download earth eat eco education email energy engineer engineering enterprises equipment esq estate events exchange expert exposed express fail faith family fan fans farm fashion feedback film final finance financial fish fishing fit fitness flights florist flowers fly foo food football forex forsale forum foundation fun fund furniture futbol fyi gallery game games garden gay gift gifts gives giving glass global gmbh gold golf graphics gratis green gripe grocery group guide guitars guru hair haus health healthcare help here hiphop hockey holdings holiday homes horse hospital host hosting hot house how icu immo immobilien inc industries ink institute insurance insure international investments jetzt jewelry juegos kaufen kids kim kitchen kiwi land lat latino law lawyer lease legal lgbt life lifestyle lighting limited limo link live living llc loan loans lol lotto love ltd ltda luxe luxury maison makeup management market marketing markets mba media medical meet meme memorial men menu miami mobile moda moe mom money monster mortgage motorcycles mov movie music navy network new news ngo ninja now observer one ong onl online ooo open organic page paris partners parts party pay pet pharmacy phd photo photography photos pics pictures pics pink pizza place plumbing plus poker porn press prime productions prof promo properties property protection pub quest racing radio realestate realtor realty recipes red rehab reise reisen rent rentals repair report republican rest restaurant review reviews rich rip rocks rodeo room rsvp rugby run sale salon save school schule science scot search secure security select services sex sexy shiksha shoes shop shopping show singles site ski skin soccer social software solar solutions space spa sport spot srl storage store stream studio study style sucks supplies supply support surf surgery systems tattoo tax taxi team tech technology tennis theater theatre tickets tips tires today tokyo tools top tours town toys trade trading training tube university uno vacations vegas ventures versicherung vet viajes video villas vin vip vision vodka vote voting voyage wales wang watch watches weather webcam website wed wedding whoswho wien wiki win wine work works world wtf xyz yachts yoga you zip zone berlin hamburg koeln london nyc amsterdam barcelona boston madrid melbourne moscow sydney taipei tirol vlaanderen wales zuerich africa bayern bzh corsica eus frl gal ist istanbul kyoto nagoya osaka quebec ruhr saarland swiss amazon apple google microsoft bmw'

/** Domains that are also endings of files, words of a sentence, or members in code. */
const DOUBTFUL =
  'py rs sh pl md zip mov so cc ps ai dev java name info id is in it me my do to be as at am by no us re la pm ms mr st gs vi im mm cv js ts link call data date day open run build next search select style click parts host space format bar foo how new now one here post pro page like watch show live love work works save read now test map filter global group country city id app cat do date audio video email book tools media phone plus red blue green black gold in so top docs final you trade team travel credit support system systems report vote meet rest room bet sex tel mobi ninja menu plus inc law men dad mom box art car pub spot link contact review exchange services security domains directory download'

const known = new Set([...COUNTRY_CODES.split(' '), ...GENERIC.split(' ')])
const doubtful = new Set(DOUBTFUL.split(' '))
/** Reserved for tests and local use (RFC 2606, 6761, 6762, 9476): found in addresses, never reported as domains. */
const reserved = new Set([
  'test',
  'example',
  'invalid',
  'localhost',
  'local',
  'internal',
  'lan',
  'corp',
  'home',
  'alt',
])

export const isTopLevelDomain = (label: string): boolean => known.has(label) || label.startsWith('xn--')
export const isDoubtfulEnding = (label: string): boolean => doubtful.has(label)
export const isReservedDomain = (label: string): boolean => reserved.has(label)
