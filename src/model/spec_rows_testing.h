/* Specs as rows of the store have them, written before there was a table of fields, and what the API
 * shows of them. There are databases with such rows: they must be read for ever, and mean the same.
 * Never change one; add new ones. */
#pragma once

static const struct {
    const char *row, *shown;
} golden_specs[] = {
    {("{\"kind\":\"native\",\"limits\":{}}"),
     ("{\"env\":{},\"folder\":\"/workspace\",\"image\":null,\"keepAlive\":false,\"kin"
      "d\":\"native\",\"labels\":{},\"lifetime\":0,\"limits\":{},\"maxRuntime\":0,\"s"
      "leepAfter\":600,\"sync\":false}")},
    {("{\"image\":\"host\",\"kind\":\"native\",\"environment\":{\"A\":\"1\",\"PATH_2"
      "\":\"a:b\"},\"labels\":{\"team\":\"x\",\"example.org/a-b\":\"ü\"},\"limits\":{"
      "\"memory\":536870912,\"pids\":256,\"cpu\":1000,\"disk\":2147483648},\"network"
      "\":\"nat\",\"maxRuntimeMs\":3600000,\"lifetimeMs\":604800000,\"freezeForMs\":6"
      "00000,\"hibernateAfterMs\":3600000,\"offloadAfterMs\":86400000,\"startup\":[\""
      "npm start\"]}"),
     ("{\"env\":{\"A\":\"1\",\"PATH_2\":\"a:b\"},\"folder\":\"/workspace\",\"freezeFo"
      "r\":600,\"hibernateAfter\":3600,\"image\":\"host\",\"keepAlive\":false,\"kind"
      "\":\"native\",\"labels\":{\"example.org/a-b\":\"\\u00FC\",\"team\":\"x\"},\"li"
      "fetime\":604800,\"limits\":{\"cpu\":1,\"disk\":2147483648,\"memory\":536870912"
      ",\"pids\":256},\"maxRuntime\":3600,\"network\":\"nat\",\"offloadAfter\":86400,"
      "\"sleepAfter\":600,\"startup\":[\"npm start\"],\"sync\":false}")},
    {("{\"kind\":\"native\",\"limits\":{},\"network\":\"none\",\"sleepAfterMs\":0,\"k"
      "eepAlive\":true,\"sync\":true}"),
     ("{\"env\":{},\"folder\":\"/workspace\",\"image\":null,\"keepAlive\":true,\"kind"
      "\":\"native\",\"labels\":{},\"lifetime\":0,\"limits\":{},\"maxRuntime\":0,\"ne"
      "twork\":\"none\",\"sleepAfter\":0,\"sync\":true}")},
    {("{\"kind\":\"native\",\"limits\":{},\"freezeForMs\":-1,\"hibernateAfterMs\":-1,"
      "\"offloadAfterMs\":-1}"),
     ("{\"env\":{},\"folder\":\"/workspace\",\"freezeFor\":0,\"hibernateAfter\":0,\"i"
      "mage\":null,\"keepAlive\":false,\"kind\":\"native\",\"labels\":{},\"lifetime\""
      ":0,\"limits\":{},\"maxRuntime\":0,\"offloadAfter\":0,\"sleepAfter\":600,\"sync"
      "\":false}")},
    {("{\"kind\":\"native\",\"limits\":{},\"rules\":[{\"allow\":true,\"address\":1677"
      "72160,\"bits\":8,\"protocol\":1,\"first\":443,\"last\":443},{\"allow\":false,"
      "\"address\":0,\"bits\":0,\"protocol\":0,\"first\":0,\"last\":65535}],\"network"
      "\":\"nat\"}"),
     ("{\"env\":{},\"folder\":\"/workspace\",\"image\":null,\"keepAlive\":false,\"kin"
      "d\":\"native\",\"labels\":{},\"lifetime\":0,\"limits\":{},\"maxRuntime\":0,\"n"
      "etwork\":\"nat\",\"rules\":[{\"allow\":true,\"ports\":\"443-443\",\"protocol\""
      ":\"tcp\",\"to\":\"10.0.0.0/8\"},{\"allow\":false,\"ports\":\"0-65535\",\"proto"
      "col\":\"any\",\"to\":\"0.0.0.0/0\"}],\"sleepAfter\":600,\"sync\":false}")},
    {("{\"kind\":\"native\",\"folder\":\"/workspace/repo\",\"binds\":{\"/data\":\"dat"
      "asets\",\"/opt/models\":\"models\"},\"limits\":{}}"),
     ("{\"binds\":{\"/data\":\"datasets\",\"/opt/models\":\"models\"},\"env\":{},\"fo"
      "lder\":\"/workspace/repo\",\"image\":null,\"keepAlive\":false,\"kind\":\"nativ"
      "e\",\"labels\":{},\"lifetime\":0,\"limits\":{},\"maxRuntime\":0,\"sleepAfter\""
      ":600,\"sync\":false}")},
    {("{\"kind\":\"native\",\"limits\":{},\"snapshotEveryMs\":3600000,\"snapshotKeepF"
      "orMs\":604800000,\"snapshotKeep\":48}"),
     ("{\"env\":{},\"folder\":\"/workspace\",\"image\":null,\"keepAlive\":false,\"kin"
      "d\":\"native\",\"labels\":{},\"lifetime\":0,\"limits\":{},\"maxRuntime\":0,\"s"
      "leepAfter\":600,\"snapshotEvery\":3600,\"snapshotKeep\":48,\"snapshotKeepFor\""
      ":604800,\"sync\":false}")},
    {("{\"kind\":\"native\",\"limits\":{\"swap\":1073741824,\"cpu\":500,\"files\":409"
      "6}}"),
     ("{\"env\":{},\"folder\":\"/workspace\",\"image\":null,\"keepAlive\":false,\"kin"
      "d\":\"native\",\"labels\":{},\"lifetime\":0,\"limits\":{\"cpu\":0.5,\"files\":"
      "4096,\"swap\":1073741824},\"maxRuntime\":0,\"sleepAfter\":600,\"sync\":false}")},
    {("{\"kind\":\"native\",\"environment\":{\"QUOTES\":\"a\\\"b\\\\c\\n\\u0001\",\""
      "EMPTY\":\"\"},\"limits\":{},\"startup\":[\"echo 'hi'\",\"@entrypoint\"]}"),
     ("{\"env\":{\"EMPTY\":\"\",\"QUOTES\":\"a\\\"b\\\\c\\n\\u0001\"},\"folder\":\"/"
      "workspace\",\"image\":null,\"keepAlive\":false,\"kind\":\"native\",\"labels\":"
      "{},\"lifetime\":0,\"limits\":{},\"maxRuntime\":0,\"sleepAfter\":600,\"startup"
      "\":[\"echo 'hi'\",\"@entrypoint\"],\"sync\":false}")},
    {("{\"kind\":\"native\",\"limits\":{},\"sleepAfterMs\":250,\"maxRuntimeMs\":31536"
      "0000000}"),
     ("{\"env\":{},\"folder\":\"/workspace\",\"image\":null,\"keepAlive\":false,\"kin"
      "d\":\"native\",\"labels\":{},\"lifetime\":0,\"limits\":{},\"maxRuntime\":31536"
      "0000,\"sleepAfter\":0.25,\"sync\":false}")},
    {("{\"image\":\"_0Z😀.😀null}a\",\"kind\":\"native\",\"folder\":\"/.}}0ä ä_/{/_\","
      "\"environment\":{\"C0\":\"Z\\t/_\",\"__0_CC\":\"\\\\ä0😀\\n_{.😀\\t0\"},\"labe"
      "ls\":{\"b-/b_/-\":\"€\\\"-€-}nullä\\\"\",\"C\":\"-}{\\\"Z\"},\"limits\":{},\"k"
      "eepAlive\":true,\"maxRuntimeMs\":6252221000,\"snapshotKeep\":7474,\"hibernateA"
      "fterMs\":172800000,\"offloadAfterMs\":41403729000}"),
     ("{\"env\":{\"C0\":\"Z\\t/_\",\"__0_CC\":\"\\\\\\u00E40\\uD83D\\uDE00\\n_{.\\u"
      "D83D\\uDE00\\t0\"},\"folder\":\"/.}}0\\u00E4 \\u00E4_/{/_\",\"hibernateAfter\""
      ":172800,\"image\":\"_0Z\\uD83D\\uDE00.\\uD83D\\uDE00null}a\",\"keepAlive\":tru"
      "e,\"kind\":\"native\",\"labels\":{\"C\":\"-}{\\\"Z\",\"b-/b_/-\":\"\\u20AC\\\""
      "-\\u20AC-}null\\u00E4\\\"\"},\"lifetime\":0,\"limits\":{},\"maxRuntime\":62522"
      "21,\"offloadAfter\":41403729,\"sleepAfter\":600,\"snapshotKeep\":7474,\"sync\""
      ":false}")},
    {("{\"image\":\"a b\",\"kind\":\"native\",\"folder\":\"/}\\\"\\\"aa \\\"-//a€/😀ä{"
      "\",\"binds\":{\"/}\":\"-\\\"\\\"a.\\\\a\\\"\"},\"limits\":{},\"network\":\"nat"
      "\",\"sleepAfterMs\":172800000,\"maxRuntimeMs\":92194,\"freezeForMs\":172800000"
      ",\"hibernateAfterMs\":1000,\"offloadAfterMs\":427625057}"),
     ("{\"binds\":{\"/}\":\"-\\\"\\\"a.\\\\a\\\"\"},\"env\":{},\"folder\":\"/}\\\"\\"
      "\"aa \\\"-//a\\u20AC/\\uD83D\\uDE00\\u00E4{\",\"freezeFor\":172800,\"hibernate"
      "After\":1,\"image\":\"a b\",\"keepAlive\":false,\"kind\":\"native\",\"labels\""
      ":{},\"lifetime\":0,\"limits\":{},\"maxRuntime\":92.194000000000003,\"network\""
      ":\"nat\",\"offloadAfter\":427625.05699999997,\"sleepAfter\":172800,\"sync\":fa"
      "lse}")},
    {("{\"kind\":\"native\",\"binds\":{\"/0- null\\\"0\\\\null\":\"-😀😀-Z\",\"/}--a}\""
      ":\"nullnull/a\"},\"limits\":{\"swap\":12345},\"network\":\"none\",\"sleepAfter"
      "Ms\":315360000000,\"maxRuntimeMs\":3600000,\"snapshotKeep\":1276,\"freezeForMs"
      "\":3600000,\"hibernateAfterMs\":1000,\"offloadAfterMs\":30000,\"startup\":[\""
      "€}€€/.ä\\\\ää\\\"\",\"ä\\n\\nä .Z a_ä.\"]}"),
     ("{\"binds\":{\"/0- null\\\"0\\\\null\":\"-\\uD83D\\uDE00\\uD83D\\uDE00-Z\",\"/}"
      "--a}\":\"nullnull/a\"},\"env\":{},\"folder\":\"/workspace\",\"freezeFor\":3600"
      ",\"hibernateAfter\":1,\"image\":null,\"keepAlive\":false,\"kind\":\"native\","
      "\"labels\":{},\"lifetime\":0,\"limits\":{\"swap\":12345},\"maxRuntime\":3600,"
      "\"network\":\"none\",\"offloadAfter\":30,\"sleepAfter\":315360000,\"snapshotKe"
      "ep\":1276,\"startup\":[\"\\u20AC}\\u20AC\\u20AC/.\\u00E4\\\\\\u00E4\\u00E4\\"
      "\"\",\"\\u00E4\\n\\n\\u00E4 .Z a_\\u00E4.\"],\"sync\":false}")},
    {("{\"image\":\"a b\",\"kind\":\"native\",\"environment\":{\"C0\":\"\\u0001ä-😀"
      "\\\"/}\\t_\\\\\",\"A\":\"}\\t.\\t\\n_ä\\\\aZZ\"},\"limits\":{},\"network\":\""
      "nat\",\"sync\":true,\"snapshotKeepForMs\":172800000,\"snapshotKeep\":5371,\"fr"
      "eezeForMs\":6519166000,\"hibernateAfterMs\":672253,\"offloadAfterMs\":3600000,"
      "\"startup\":[\"-😀ä-null}.\\n\",\"_null 0\\\"}-}0\"]}"),
     ("{\"env\":{\"A\":\"}\\t.\\t\\n_\\u00E4\\\\aZZ\",\"C0\":\"\\u0001\\u00E4-\\uD8"
      "3D\\uDE00\\\"/}\\t_\\\\\"},\"folder\":\"/workspace\",\"freezeFor\":6519166,\""
      "hibernateAfter\":672.25300000000004,\"image\":\"a b\",\"keepAlive\":false,\"ki"
      "nd\":\"native\",\"labels\":{},\"lifetime\":0,\"limits\":{},\"maxRuntime\":0,\""
      "network\":\"nat\",\"offloadAfter\":3600,\"sleepAfter\":600,\"snapshotKeep\":53"
      "71,\"snapshotKeepFor\":172800,\"startup\":[\"-\\uD83D\\uDE00\\u00E4-null}.\\n"
      "\",\"_null 0\\\"}-}0\"],\"sync\":true}")},
    {("{\"kind\":\"native\",\"folder\":\"/€\\\\😀/ä_\\\\ 0_ {\",\"limits\":{},\"snapsh"
      "otEveryMs\":172800000,\"snapshotKeepForMs\":102615000,\"freezeForMs\":300000,"
      "\"offloadAfterMs\":288335}"),
     ("{\"env\":{},\"folder\":\"/\\u20AC\\\\\\uD83D\\uDE00/\\u00E4_\\\\ 0_ {\",\"free"
      "zeFor\":300,\"image\":null,\"keepAlive\":false,\"kind\":\"native\",\"labels\":"
      "{},\"lifetime\":0,\"limits\":{},\"maxRuntime\":0,\"offloadAfter\":288.33499999"
      "999998,\"sleepAfter\":600,\"snapshotEvery\":172800,\"snapshotKeepFor\":102615,"
      "\"sync\":false}")},
    {("{\"image\":\"debian\",\"kind\":\"native\",\"binds\":{\"//€😀\\\"\\\"ä{}\\\\\":"
      "\"{/€ \"},\"limits\":{},\"maxRuntimeMs\":172800000,\"snapshotKeep\":4214,\"fre"
      "ezeForMs\":752989,\"hibernateAfterMs\":30000,\"offloadAfterMs\":204925000}"),
     ("{\"binds\":{\"//\\u20AC\\uD83D\\uDE00\\\"\\\"\\u00E4{}\\\\\":\"{/\\u20AC \"},"
      "\"env\":{},\"folder\":\"/workspace\",\"freezeFor\":752.98900000000003,\"hibern"
      "ateAfter\":30,\"image\":\"debian\",\"keepAlive\":false,\"kind\":\"native\",\"l"
      "abels\":{},\"lifetime\":0,\"limits\":{},\"maxRuntime\":172800,\"offloadAfter\""
      ":204925,\"sleepAfter\":600,\"snapshotKeep\":4214,\"sync\":false}")},
    {("{\"kind\":\"native\",\"folder\":\"/null\\\\0😀/_/0.  €-ä\\\"__Z_.\\\"_ä_\\\\a\\"
      "\\{.\",\"labels\":{\"C/\":\"\\\"Z/-\\\"{ }{_/😀\",\"0\":\"😀😀}_null{€}/\"},\"bin"
      "ds\":{\"/null./\\\\\":\"0/_\",\"/ä\\\"}-.😀\\\"_}\":\"€null€-\"},\"limits\":{},"
      "\"network\":\"nat\",\"sleepAfterMs\":1000,\"lifetimeMs\":30000,\"offloadAfterM"
      "s\":3600000}"),
     ("{\"binds\":{\"/null./\\\\\":\"0/_\",\"/\\u00E4\\\"}-.\\uD83D\\uDE00\\\"_}\":\""
      "\\u20ACnull\\u20AC-\"},\"env\":{},\"folder\":\"/null\\\\0\\uD83D\\uDE00/_/0.  "
      "\\u20AC-\\u00E4\\\"__Z_.\\\"_\\u00E4_\\\\a\\\\{.\",\"image\":null,\"keepAlive"
      "\":false,\"kind\":\"native\",\"labels\":{\"0\":\"\\uD83D\\uDE00\\uD83D\\uDE00}"
      "_null{\\u20AC}/\",\"C/\":\"\\\"Z/-\\\"{ }{_/\\uD83D\\uDE00\"},\"lifetime\":30,"
      "\"limits\":{},\"maxRuntime\":0,\"network\":\"nat\",\"offloadAfter\":3600,\"sle"
      "epAfter\":1,\"sync\":false}")},
    {("{\"image\":\"host\",\"kind\":\"native\",\"environment\":{\"CA099\":\"{\\ta\\\""
      "\\t😀-änul\",\"b0A9_\":\"/€anull.\\u00010\\u0001\"},\"limits\":{\"memory\":10"
      "99511627776,\"swap\":820871946099,\"cpu\":250,\"files\":6460555},\"sleepAfterM"
      "s\":315360000000,\"keepAlive\":true,\"lifetimeMs\":256275331,\"snapshotKeepFor"
      "Ms\":172800000,\"hibernateAfterMs\":1000}"),
     ("{\"env\":{\"CA099\":\"{\\ta\\\"\\t\\uD83D\\uDE00-\\u00E4nul\",\"b0A9_\":\"/\\"
      "u20ACanull.\\u00010\\u0001\"},\"folder\":\"/workspace\",\"hibernateAfter\":1,"
      "\"image\":\"host\",\"keepAlive\":true,\"kind\":\"native\",\"labels\":{},\"life"
      "time\":256275.33100000001,\"limits\":{\"cpu\":0.25,\"files\":6460555,\"memory"
      "\":1099511627776,\"swap\":820871946099},\"maxRuntime\":0,\"sleepAfter\":315360"
      "000,\"snapshotKeepFor\":172800,\"sync\":false}")},
    {("{\"kind\":\"native\",\"folder\":\"/ä\\\\/00_€\\\\/\\\"/😀/a0-Z\",\"limits\":{},"
      "\"network\":\"none\",\"keepAlive\":true,\"lifetimeMs\":315360000000,\"snapshot"
      "KeepForMs\":30000,\"snapshotKeep\":5790,\"offloadAfterMs\":250,\"startup\":[\""
      "€ä\\\\}Z\\\\}\",\"a}\\n.\\n0 }ä{nu\"]}"),
     ("{\"env\":{},\"folder\":\"/\\u00E4\\\\/00_\\u20AC\\\\/\\\"/\\uD83D\\uDE00/a0-Z"
      "\",\"image\":null,\"keepAlive\":true,\"kind\":\"native\",\"labels\":{},\"lifet"
      "ime\":315360000,\"limits\":{},\"maxRuntime\":0,\"network\":\"none\",\"offloadA"
      "fter\":0.25,\"sleepAfter\":600,\"snapshotKeep\":5790,\"snapshotKeepFor\":30,\""
      "startup\":[\"\\u20AC\\u00E4\\\\}Z\\\\}\",\"a}\\n.\\n0 }\\u00E4{nu\"],\"sync"
      "\":false}")},
    {("{\"kind\":\"native\",\"environment\":{\"A9b\":\"😀a.}/_0\\u0001{\\n\",\"__99b"
      "C\":\"\\na/ä.0\\\"}\\u0001-\"},\"labels\":{\"00A_.\":\"-0/😀\\\"\\\"__ääa.\"}"
      ",\"limits\":{},\"network\":\"none\",\"sleepAfterMs\":315360000000,\"lifetimeMs"
      "\":3600000,\"snapshotEveryMs\":172800000,\"offloadAfterMs\":250,\"startup\":["
      "\"\\\\\\\"\\t.null/ 😀a\",\"\\u00010Za._0{€ \"]}"),
     ("{\"env\":{\"A9b\":\"\\uD83D\\uDE00a.}/_0\\u0001{\\n\",\"__99bC\":\"\\na/\\u0"
      "0E4.0\\\"}\\u0001-\"},\"folder\":\"/workspace\",\"image\":null,\"keepAlive\""
      ":false,\"kind\":\"native\",\"labels\":{\"00A_.\":\"-0/\\uD83D\\uDE00\\\"\\\"__"
      "\\u00E4\\u00E4a.\"},\"lifetime\":3600,\"limits\":{},\"maxRuntime\":0,\"network"
      "\":\"none\",\"offloadAfter\":0.25,\"sleepAfter\":315360000,\"snapshotEvery\":1"
      "72800,\"startup\":[\"\\\\\\\"\\t.null/ \\uD83D\\uDE00a\",\"\\u00010Za._0{\\u2"
      "0AC \"],\"sync\":false}")},
};
