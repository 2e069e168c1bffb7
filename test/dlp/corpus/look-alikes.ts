import { luhnDigit, remainder, weightedSum } from './check-digits.ts'
import type { SeededRandom } from './seeded-random.ts'
import { ALPHABETS } from './seeded-random.ts'

/** A text that is neither a secret nor personal data, but has the form of one. */
export interface LookAlike {
  kind: string
  text: string
  /** Its name in prose, and in programs. */
  name: string
  key: string
}

type LookAlikeMaker = (random: SeededRandom) => LookAlike

const { hexadecimal, alphanumeric, upperAlphanumeric, base64, base64url, upper } = ALPHABETS

const lookAlike =
  (name: string, key: string, write: (random: SeededRandom) => string) =>
  (kind: string): LookAlikeMaker =>
  (random) => ({ kind, text: write(random), name, key })

const hex = (count: number) => (random: SeededRandom) => random.characters(hexadecimal, count)

const filled =
  (...forms: readonly string[]) =>
  (random: SeededRandom) =>
    random.fill(random.pick(forms))

const one =
  (...texts: readonly string[]) =>
  (random: SeededRandom) =>
    random.pick(texts)

const uuid = (random: SeededRandom): string =>
  `${hex(8)(random)}-${hex(4)(random)}-4${hex(3)(random)}-${random.pick([...'89ab'])}${hex(3)(random)}-${hex(12)(random)}`

function isbn(random: SeededRandom): string {
  const head = `978${random.digits(9)}`
  const check = (10 - (weightedSum(head, [1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3]) % 10)) % 10
  const digits = head + String(check)
  return random.chance(0.5) ? digits.replace(/(...)(.)(...)(.....)(.)/, '$1-$2-$3-$4-$5') : digits
}

function barcode(random: SeededRandom): string {
  const head = random.pick(['400', '501', '761', '841', '590']) + random.digits(9)
  return head + String((10 - (weightedSum(head, [1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3]) % 10)) % 10)
}

/** ISO 11649: a creditor's reference, checked as an account number is. */
function creditorReference(random: SeededRandom): string {
  const reference = random.digits(12)
  const check = 98 - remainder(`${reference}271500`, 97)
  return `RF${String(check).padStart(2, '0')}${reference}`
}

function deviceNumber(random: SeededRandom): string {
  const head = `35${random.digits(12)}`
  return head + luhnDigit(head)
}

const armored =
  (label: string) =>
  (random: SeededRandom): string => {
    const lines = random.characters(base64, 380).match(/.{1,64}/g) ?? []
    return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----`
  }

const MAKERS = {
  uuid: lookAlike('request id', 'id', uuid),
  uuid_capitals: lookAlike('correlation id', 'correlationId', (random) => uuid(random).toUpperCase()),
  git_commit: lookAlike('commit', 'commit', hex(40)),
  git_short: lookAlike('revision', 'rev', hex(7)),
  md5: lookAlike('MD5', 'md5', hex(32)),
  sha256: lookAlike('SHA-256', 'sha256', hex(64)),
  image_digest: lookAlike('image', 'image', (random) => `registry/app@sha256:${hex(64)(random)}`),
  integrity: lookAlike('integrity', 'integrity', (random) => `sha512-${random.characters(base64, 86)}==`),
  etag: lookAlike('ETag', 'etag', (random) => `W/"${hex(16)(random)}"`),
  trace: lookAlike('traceparent', 'traceparent', (random) => `00-${hex(32)(random)}-${hex(16)(random)}-01`),
  object_id: lookAlike('document', '_id', hex(24)),
  ulid: lookAlike(
    'event',
    'event_id',
    (random) => `01H${random.characters('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 23)}`,
  ),
  request_id: lookAlike('request', 'request_id', (random) => `req_${random.characters(alphanumeric, 24)}`),
  chunk_file: lookAlike('bundle', 'asset', (random) => `assets/index-${random.characters(base64url, 8)}.js`),
  image_data: lookAlike(
    'icon',
    'src',
    (random) => `data:image/png;base64,iVBORw0KGgo${random.characters(base64, 300)}=`,
  ),
  order_number: lookAlike(
    'order number',
    'order_number',
    filled('%#########', '302-#######-#######', 'ORD-2024-######'),
  ),
  order_number_16: lookAlike('order', 'order_id', filled('7###############', '1### #### #### ####')),
  invoice: lookAlike('invoice', 'invoice_number', filled('INV-2024-####', 'RE######', '2024-#####')),
  tracking_parcel: lookAlike(
    'tracking number',
    'tracking_number',
    filled('1Z@##@##%#########', '00340###############', '9400 1### #### #### #### ##'),
  ),
  tracking_post: lookAlike(
    'shipment',
    'shipment',
    filled('RR#########DE', 'LX#########CN', 'JD0146000#########'),
  ),
  isbn: lookAlike('ISBN', 'isbn', isbn),
  barcode: lookAlike('EAN', 'ean', barcode),
  device: lookAlike('IMEI', 'imei', deviceNumber),
  vehicle: lookAlike(
    'VIN',
    'vin',
    (random) => `W${random.characters('ABCDEFGHJKLMNPRSTUVWXYZ0123456789', 16)}`,
  ),
  container: lookAlike('container', 'container', filled('MSCU#######', 'TGHU######-#')),
  security: lookAlike('ISIN', 'isin', filled('US##########', 'DE000[ABC]######')),
  reference: lookAlike('payment reference', 'reference', creditorReference),
  epoch: lookAlike('timestamp', 'timestamp', filled('17########', '17###########', '17##############')),
  iso_time: lookAlike(
    'created',
    'created_at',
    filled('2024-0%-1#T1#:[012345]#:[012345]#.###Z', '2023-1[012]-0%T0#:[012345]#:00+02:00'),
  ),
  date: lookAlike('date', 'date', filled('1#.0%.202#', '0%/1#/202#', '202#-1[012]-0%')),
  clock: lookAlike('time', 'time', filled('1#:[012345]#:[012345]#', '0%:[012345]#:[012345]#.###')),
  years: lookAlike('period', 'period', filled('199#-200#', '201#–202#')),
  version: lookAlike('version', 'version', filled('%.#.#', '1#.#.%-beta.#', 'v%.1#.#', '^%.##.#')),
  version_four: lookAlike(
    'version',
    'driver_version',
    filled('v31.0.15.%###', 'v4.8.9037.0', 'v%.%.###.####'),
  ),
  section: lookAlike('section', 'section', filled('%.#.%', '%.%.%.a', '§ %#')),
  price: lookAlike('total', 'total', filled('€ 1.###,##', '$#,###,###.##', '%## ###,00 zł', 'CHF %###.00')),
  quantity: lookAlike('count', 'count', filled('%## ### ###', '%,###,###,###', '%########')),
  long_digits: lookAlike('serial', 'serial', (random) => random.digits(random.integer(22, 60))),
  serial: lookAlike(
    'serial number',
    'serialNumber',
    filled('@@##-####-@###', '#[ABCDEF]##-%###-####', 'SN%#######'),
  ),
  sku: lookAlike('article', 'sku', filled('@@@-#####-@@', 'A-####-##')),
  ticket: lookAlike('ticket', 'ticket', filled('OPS-####', '#%####', 'JIRA-#####')),
  postal: lookAlike('postal code', 'zip', filled('#####-####', '#####', '[ABEGHLNSW]## #[ABDEF]@')),
  coordinates: lookAlike('position', 'position', filled('4#.######, 1#.######', '-3#.####, 15#.####')),
  mac: lookAlike('MAC', 'mac', (random) =>
    Array.from({ length: 6 }, () => hex(2)(random)).join(random.pick([':', '-'])),
  ),
  pointer: lookAlike('address', 'pointer', (random) => `0x7fff${hex(8)(random)}`),
  colour: lookAlike('colour', 'color', (random) => `#${hex(6)(random)}`),
  scope: lookAlike(
    'call',
    'symbol',
    one('std::vector<int>', 'Foo::bar', 'a::b::c', 'System.out.println', 'core::fmt::Debug'),
  ),
  file: lookAlike(
    'file',
    'file',
    one(
      'README.md',
      'index.ts',
      'main.rs',
      'setup.py',
      'deploy.sh',
      'Makefile.am',
      'styles.css',
      'App.vue',
      'lib.so',
      'data.csv',
    ),
  ),
  member: lookAlike(
    'call',
    'expression',
    one(
      'user.name',
      'request.id',
      'response.data.items',
      'console.log',
      'this.state.value',
      'np.mean',
      'arr.map',
    ),
  ),
  package: lookAlike(
    'package',
    'dependency',
    one('react@18.2.0', '@types/node@20.4.1', 'lodash@^4.17.21', 'pkg@latest', 'numpy==1.26.4'),
  ),
  abbreviation: lookAlike(
    'note',
    'note',
    one('e.g.', 'i.e.this', 'etc.', 'end.Next', 'Node.js', 'ASP.NET Core', 'U.S.A.'),
  ),
  handle: lookAlike('handle', 'handle', one('@anna_b', '@team-platform', 'root@localhost', 'user@host')),
  capitals: lookAlike(
    'status',
    'status',
    one(
      'DOCUMENT',
      'STANDARD',
      'INTERNET',
      'COMPLETE',
      'REJECTED',
      'DISABLED',
      'PRIORITY',
      'OVERRIDE',
      'SHUTDOWN',
      'ABSTRACT',
      'IMPORTANT',
      'TRANSACTION',
    ),
  ),
  public_key: lookAlike('public key', 'public_key', armored('PUBLIC KEY')),
  certificate: lookAlike('certificate', 'certificate', armored('CERTIFICATE')),
  ssh_public: lookAlike(
    'deploy key',
    'ssh_key',
    (random) => `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA${random.characters(base64, 44)} deploy`,
  ),
  placeholder: lookAlike(
    'password',
    'password',
    one(
      '********',
      '<your-password>',
      '$' + '{DB_PASSWORD}',
      'changeme',
      'process.env.API_KEY',
      'YOUR_API_KEY_HERE',
      'xxxxxxxxxxxxxxxx',
      'null',
      'REDACTED',
    ),
  ),
  photo: lookAlike(
    'photo',
    'photo',
    filled(
      'IMG_2024051#_1###[012345]#.jpg',
      'Screenshot_2024-05-1#-1#-2#-3#-###.png',
      'VID-2024051#-WA####.mp4',
      'DSC_####.NEF',
    ),
  ),
  numbered_file: lookAlike(
    'file',
    'file_name',
    filled(
      'report_########.pdf',
      'scan-%###########.tif',
      'backup_2024051#_03##.tar.gz',
      'dump-2024051#-03##-full.sql',
      '%########.csv',
      '%###############.jpg',
      '%############_###_n.png',
    ),
  ),
  archive: lookAlike(
    'archive',
    'archive',
    filled(
      'nginx-1.2#.1#.1#.tar.gz',
      'driver_%.%.1#.1##.jar',
      'app_1.%.%.%-1_amd64.deb',
      'core-%#.%.%.%.whl',
    ),
  ),
  literal: lookAlike(
    'constant',
    'limit',
    filled('%##_###_###', '%_###_###', '%###_####_####', '0b1010_0110'),
  ),
  cloud_account: lookAlike(
    'role',
    'role_arn',
    filled('arn:aws:iam::############:role/deploy', 'aws://############/eu-central-1'),
  ),
  part_number: lookAlike('part', 'part', filled('A##-##-####-##', '%##-##-####-%##', 'P%##-##-####')),
  columns: lookAlike(
    'row',
    'row',
    filled('####\t####\t####', '2024051#\t0###', '%##\t%##\t%###', '%####\t######'),
  ),
  unit: lookAlike(
    'unit',
    'unit',
    one('getty@tty1.service', 'logo@2x.png', 'wg-quick@wg0.service', 'icon@3x.webp', 'a@b.bak'),
  ),
  called: lookAlike(
    'call',
    'source',
    one('token = nextToken2(1)', 'password = args.password[0]', 'key: keyOf(item)'),
  ),
  plain_url_part: lookAlike(
    'path',
    'path',
    filled('/api/v1/users/#######', '/orders/####/items?page=%', 'C:\\Users\\Public\\log###.txt'),
  ),
  doi: lookAlike('DOI', 'doi', filled('10.1038/s#####-020-####-%', '10.1145/#######.#######')),
  researcher: lookAlike('ORCID', 'orcid', filled('0000-000%-####-####')),
  licence_plate: lookAlike('plate', 'plate', filled('B-@@ ####', '@@ ### @@')),
  scientific: lookAlike('value', 'value', filled('%.######e-1#', '0.##########', '-%##.#####')),
  account_id: lookAlike('account id', 'account_id', (random) => random.digits(12)),
  flight: lookAlike(
    'booking',
    'booking',
    (random) => `${random.characters(upperAlphanumeric, 6)} / LH${random.digits(3)}`,
  ),
  slug: lookAlike(
    'slug',
    'slug',
    (random) =>
      `how-to-reset-${random.characters(alphanumeric, 5).toLowerCase()}-in-${random.integer(10, 90)}-steps`,
  ),
  identifier: lookAlike(
    'constant',
    'constant',
    (random) => `${random.characters(upper, 5)}_${random.characters(upper, 7)}_${random.integer(1, 9)}`,
  ),
} as const

export const LOOK_ALIKES: Readonly<Record<string, LookAlikeMaker>> = Object.fromEntries(
  Object.entries(MAKERS).map(([kind, make]) => [kind, make(kind)]),
)
