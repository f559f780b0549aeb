"""Function words: they say nothing of what a text is about, so a query is searched without them.

Questions are what people type, hence the question words. The lists are short on purpose: a word that
may name a thing ("will", "may" as a month, German "Arm") is not in them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from knowledge.lexical.normalization import SIMPLIFIED

_LISTS = {
    "en": """a an the and or but nor if then else than so as of at by for from in into on onto to with
        without within about over under between through during before after above below up down out off
        again further is am are was were be been being do does did doing done has have had having can
        could shall should would must might i me my mine we us our ours you your yours he him his she
        her hers it its they them their theirs this that these those there here who whom whose which
        what when where why how any some each every all both few more most other such no not only own
        same too very just also ever please tell give show explain describe don't doesn't didn't isn't
        aren't wasn't weren't can't cannot couldn't shouldn't wouldn't won't i'm i've i'd you're it's
        that's there's what's who's where's how's let's we're they're""",
    "zh": """的 了 吗 呢 吧 啊 呀 嘛 哦 是 在 有 和 与 及 或 或者 以及 而 而且 并 并且 也 都 就 还 又 很
        把 被 从 对 对于 向 给 为 为了 于 以 由 由于 因为 所以 但 但是 如果 那么 这 那 这个 那个 这些 那些
        这里 那里 我 你 您 他 她 它 我们 你们 他们 她们 它们 自己 什么 什么样 甚么 怎么 怎样 怎么样 如何 哪
        哪些 哪个 哪里 哪儿 哪一 谁 为什么 为何 何时 什么时候 多少 几 几个 是否 是不是 有没有 能否 可否 能不能
        可以 能 会 要 请 请问 一下 告诉 关于 之 其 该 等 地 得 着 过 个 吗 不 没 没有 到 上 下 中 里 时 去 来
        用 让 使 将 应该 应 需 需要 有哪些 是什么 什么是 怎么办 怎么做""",
    "de": """der die das den dem des ein eine einen einem einer eines und oder aber denn sondern doch als
        wie wenn weil dass daß ob zu zum zur in im ins an am auf aus bei beim bis durch für gegen mit nach
        ohne seit um unter über von vom vor während wegen zwischen ich mich mir du dich dir er ihn ihm sie
        es wir uns ihr euch ihnen mein meine dein deine sein seine ihre unser unsere euer dieser diese
        dieses diesem diesen jener jene jenes man sich nicht kein keine keinen keinem keiner nur auch noch
        schon sehr so ist bin bist sind seid war waren wäre wird werden wurde wurden worden hat habe haben
        hatte hatten kann können konnte muss müssen soll sollen sollte darf dürfen mag welche welcher
        welches welchen welchem was wer wen wem wessen wann wo woher wohin warum wieso weshalb wofür womit
        worin wozu wieviel viel viele da dann hier dort es gibt bitte""",
    "fr": """le la les l un une des du de d au aux et ou mais donc or ni car si que qu qui quoi dont où
        quand comment pourquoi combien quel quelle quels quelles lequel laquelle lesquels lesquelles ce cet
        cette ces cela ça ceci celui celle ceux celles c je j me m tu te t il elle on nous vous ils elles
        lui leur leurs se s son sa ses mon ma mes ton ta tes notre nos votre vos y en dans sur sous avec
        sans pour par vers chez entre contre depuis pendant avant après à ne n pas plus moins très aussi
        est es suis sommes êtes sont était étaient être été a as ai avons avez ont avait avaient avoir fait
        faire faut peut peuvent doit doivent""",
    "es": """el la los las lo un una unos unas y e o u pero sino ni que si como cómo cuando cuándo donde
        dónde adónde quien quién quienes quiénes qué cual cuál cuales cuáles cuanto cuánto cuánta cuántos
        cuántas cuyo cuya por para porque de del a al en con sin sobre entre hasta desde hacia contra según
        durante tras ante bajo yo me mi tú te ti tu él ella ello nosotros nos vosotros os ellos ellas le les
        se su sus mis tus nuestro nuestra nuestros nuestras este esta esto estos estas ese esa eso esos esas
        aquel aquella aquello no ni más menos muy también ya es soy eres somos son era eran ser sido fue
        fueron está están estar estaba he has ha hemos han había haber hay puede pueden debe deben""",
    "it": """il lo la i gli le l un uno una di del dello della dei degli delle d a al allo alla ai agli alle
        da dal dallo dalla dai dagli dalle in nel nello nella nei negli nelle con su sul sullo sulla sui
        sugli sulle per tra fra e ed o ma se che chi cui come quando dove perché quale quali quanto quanta
        quanti quante cosa io mi tu ti lui lei si noi ci voi vi loro ne mio mia tuo tua suo sua nostro
        nostra vostro vostra questo questa questi queste quello quella quelli quelle non più meno molto
        anche è sono sei siamo siete era erano essere stato stata ho hai ha abbiamo avete hanno aveva avere
        può possono deve devono""",
    "pt": """o a os as um uma uns umas e ou mas nem que se como quando onde aonde quem qual quais quanto
        quanta quantos quantas cujo cuja por porque porquê para de do da dos das em no na nos nas num numa
        ao aos à às com sem sobre entre até desde contra segundo durante após eu me mim tu te ti você vocês
        ele ela eles elas nós vos lhe lhes seu sua seus suas meu minha teu tua nosso nossa este esta isto
        estes estas esse essa isso esses essas aquele aquela aquilo não mais menos muito também já é sou és
        somos são era eram ser sido foi foram está estão estar estava tem têm tinha ter há pode podem deve
        devem pelo pela pelos pelas""",
    "nl": """de het een en of maar want dus dat die dit deze wat wie waar waarom wanneer hoe welk welke
        hoeveel waarmee waarvoor waarin van in op aan bij met zonder voor door over onder tussen uit naar
        tot tegen om te ten ter als dan toen ik me mij mijn je jij jou jouw u uw hij hem zijn zij ze haar
        wij we ons onze jullie hun hen zich er hier daar niet geen ook nog al wel zeer is ben bent was
        waren wordt worden werd werden heb hebt heeft hebben had hadden kan kunnen kon moet moeten mag zou
        zouden zal zullen""",
    "ru": """и а но да или либо что чтобы как если когда где куда откуда почему зачем кто кого кому кем чей
        чья чьё какой какая какое какие каких каким сколько который которая которое которые которых в во на
        с со к ко у о об от до из за по под над при про без для через между перед после не ни же ли бы вот
        уже ещё еще только также тоже очень я меня мне мной ты тебя тебе он его ему им она её ее ей мы нас
        нам вы вас вам они их ими это этот эта эти этого этой этих тот та те того той тех свой своя своё
        свои мой моя твой наш ваш быть был была было были есть будет будут нет можно нужно""",
    "uk": """і й та але або чи що щоб як якщо коли де куди звідки чому хто кого кому який яка яке які
        скільки в у на з із зі до від за по під над при про без для через між перед після не ні же б я мене
        ти він його йому вона її ми нас ви вас вони їх це цей ця ці той та те ті свій бути був була було
        були є буде""",
    "sv": """och eller men att som om när var vart varför hur vad vem vilken vilket vilka en ett den det de
        i på av till från med utan för över under mellan efter före vid åt är var vara varit blir blev har
        hade ha kan kunde ska skulle måste får jag mig du dig han honom hon henne vi oss ni er dem sig min
        din sin sitt sina denna detta dessa inte också mycket så""",
    "da": """og eller men at som om når hvor hvorfor hvordan hvad hvem hvilken hvilket hvilke en et den det
        de i på af til fra med uden for over under mellem efter før ved er var være været bliver blev har
        havde have kan kunne skal skulle må jeg mig du dig han ham hun hende vi os I jer dem sig min din sin
        denne dette disse ikke også meget så""",
    "no": """og eller men at som om når hvor hvorfor hvordan hva hvem hvilken hvilket hvilke en ei et den
        det de i på av til fra med uten for over under mellom etter før ved er var være vært blir ble har
        hadde ha kan kunne skal skulle må jeg meg du deg han ham hun henne vi oss dere dem seg min din sin
        denne dette disse ikke også mye så""",
    "pl": """i a ale lub albo oraz że żeby jak jeśli gdy kiedy gdzie dokąd skąd dlaczego kto kogo komu co
        czego czemu czym który która które których jaki jaka jakie jakich ile czy w we na z ze do od za po
        pod nad przy przez bez dla między przed o u nie tak też także bardzo już jeszcze ja mnie ty ciebie
        on jego jemu ona jej my nas wy was oni one ich im to ten ta te tego tej tych się swój mój twój jest
        są był była było były być będzie będą ma mają można""",
    "cs": """a i ale nebo že aby jak když kdy kde kam odkud proč kdo koho komu co čeho čemu který která
        které kterých jaký jaká jaké kolik zda v ve na z ze do od za po pod nad při přes bez pro mezi před o
        u k ke s se si ne ani také velmi už ještě já mě ty tě on jeho ona její my nás vy vás oni jejich to
        ten ta ty toho té těch je jsou byl byla bylo byli být bude budou má mají""",
    "tr": """ve veya ya ile ama fakat ki de da mi mı mu mü ne nedir neden niçin niye nasıl nerede nereye
        nereden kim kime hangi kaç ne zaman bir bu şu o bunlar şunlar onlar ben sen biz siz beni seni onu
        bizi sizi benim senin onun bizim sizin için gibi kadar göre daha en çok var yok değil olan olarak
        oldu olur mıdır midir""",
    "ar": """و أو ثم لكن بل أن إن أنّ كي لو إذا متى أين كيف لماذا لما ماذا ما من هل كم أي أية في على إلى عن
        مع بين عند منذ حتى بدون غير هذا هذه ذلك تلك هؤلاء الذي التي الذين اللذان هو هي هم هن أنا نحن أنت
        أنتم كان كانت كانوا يكون تكون ليس ليست قد لقد لا لم لن كل بعض هناك هنا""",
    "hi": """का के की को से में पर ने और या लेकिन कि जो वह वे यह ये इस उस इन उन मैं हम तुम आप मेरा मेरी मेरे
        हमारा आपका उसका उनका इसका क्या कौन किस किसे किसने कब कहाँ कहां क्यों कैसे कितना कितने कितनी कौनसा है
        हैं था थे थी हो होता होती होते हुआ हुई हुए कर करना करने किया गया गई गए जा रहा रही रहे नहीं न भी ही तो
        तक लिए साथ एक""",
    "ja": """の に は を た が で て と し れ さ する も な です ます ない この その あの これ それ あれ ここ
        そこ どこ だれ 誰 何 なに なん いつ なぜ どう どの どれ どのように いくつ いくら から まで より こと
        もの ため よう""",
    "ko": """은 는 이 가 을 를 의 에 에서 에게 와 과 로 으로 도 만 그 저 이것 그것 저것 무엇 뭐 누구 언제
        어디 어디서 왜 어떻게 어떤 어느 몇 얼마 및 또는 그리고 하지만 있는 없는 하는 한다 합니다 있습니까 입니까""",
    "th": "ที่ และ ใน ของ เป็น ได้ ว่า จะ มี ให้ กับ จาก หรือ แต่ คือ อะไร ใคร ไหน เมื่อไร ทำไม อย่างไร",
}


def _plain(word: str) -> str:
    word = unicodedata.normalize("NFKC", word).replace("’", "'").casefold()
    return word.translate(SIMPLIFIED)


STOP_WORDS = {
    language: frozenset(_plain(word) for word in words.split())
    for language, words in _LISTS.items()
}


def is_stop_word(word: str, languages: Iterable[str]) -> bool:
    """Whether the word, as it stands in the text, is a function word of one of the languages."""
    plain = _plain(word)
    return any(plain in STOP_WORDS.get(language, ()) for language in languages)
